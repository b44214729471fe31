"""Situations reported in public, by their ids: the HTTP API."""

from domain.attempt import Attempt
from domain.job import Job
from tests.support.http import Answered, Client, client


def test_C09_the_rules_of_the_idempotency_key_header() -> None:
    meanwhile: list[Answered] = []
    door: Client

    def run(job: Job, attempt: Attempt) -> object:
        meanwhile.append(door.post('"running"'))
        return "done"

    door = client(run)
    assert door.post(None).reason == "key_missing"
    assert door.post(None).status == 400
    assert (door.post("job-001").status, door.post("job-001").reason) == (400, "key_invalid")
    assert meanwhile == []

    assert door.post('"running"').status == 200
    (running,) = meanwhile
    assert (running.status, running.reason) == (409, "still_running")
    assert 1 <= int(running.headers["Retry-After"]) <= 10

    other = door.post('"running"', '{"amount":1}')
    assert (other.status, other.reason) == (422, "key_reused")
    assert len(meanwhile) == 1
