"""With IAM enforced, over TLS: what the role grants suffices; without the table the worker fails closed."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from entrypoints.emulator.deployment import Deployment
from entrypoints.emulator.launcher import Tls, emulator
from infra.permissions import TABLE_ACTIONS
from tests.e2e.conftest import OPERATIONS, SMALL
from tests.support.deployed import Watched
from tests.support.project import copied_project


def certified(folder: Path) -> Tls:
    authority = trustme.CA()
    made = authority.issue_cert("127.0.0.1", "localhost")
    tls = Tls(folder / "certificate.pem", folder / "key.pem", folder / "authority.pem")
    authority.cert_pem.write_to_path(str(tls.authority))
    made.private_key_pem.write_to_path(str(tls.key))
    for blob in made.cert_chain_pems:
        blob.write_to_path(str(tls.certificate), append=True)
    return tls


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    project = copied_project(tmp_path_factory.mktemp("project"), OPERATIONS)
    with emulator(certified(tmp_path_factory.mktemp("tls")), AUTH="true") as aws:
        deployment = Deployment(aws, tmp_path_factory.mktemp("cdk"), project)
        deployment.bootstrap()
        yield Watched(aws, deployment.deploy({**SMALL, "own-credentials": "true"}))


def test_what_is_granted_suffices(guarded: Watched) -> None:
    assert guarded.aws.url.startswith("https://")
    malformed = '{"job_id":"poison"'
    guarded.send(
        '{"job_id":"granted"}', '{"job_id":"granted"}', malformed, '{"job_id":"flaky","operation":"fails_once"}'
    )
    guarded.until_events("granted", "business_operation_executed", "job_skipped")
    assert guarded.dead_letter(malformed)["reason"] == "not_json"
    guarded.until_events("flaky", "job_failed", "business_operation_executed")
    guarded.until(lambda: guarded.counts() == (0, 0), guarded.counts)
    assert not [line for line in guarded.lines() if line["event"] == "settling_failed"]


def test_without_the_table_nothing_runs_and_the_message_survives(guarded: Watched) -> None:
    iam = guarded.client("iam")
    (role,) = [one["RoleName"] for one in iam.list_roles()["Roles"] if "WorkerRole" in one["RoleName"]]
    (name,) = iam.list_role_policies(RoleName=role)["PolicyNames"]
    policy = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
    kept = [one for one in policy["Statement"] if set(one["Action"]) != set(TABLE_ACTIONS)]
    assert len(kept) == len(policy["Statement"]) - 1
    iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=json.dumps({**policy, "Statement": kept}))
    guarded.send('{"job_id":"denied"}')
    guarded.until(lambda: bool(guarded.events("denied")))
    (line,) = guarded.lines("denied")
    assert (line["event"], line["reason"]) == ("job_failed", "store_unavailable")
    assert "AccessDenied" in str(line)
    assert guarded.counts() == (0, 1)
    assert "denied" not in guarded.records()
