"""What the stack means: every rule of the infrastructure, whatever CDK calls things."""

from typing import Any

import pytest

from infra.worker_props import WorkerPropsError
from tests.support.template import KEY, app, folder_of, named, only, resources, stack, template


def queue(made: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = named(made, "SQS::Queue", "Jobs")[1]["Properties"]
    return properties


def dead_letters(made: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = named(made, "SQS::Queue", "DeadLetters")[1]["Properties"]
    return properties


def mapping(made: dict[str, Any]) -> dict[str, Any]:
    return only(made, "Lambda::EventSourceMapping")


def function(made: dict[str, Any]) -> dict[str, Any]:
    return only(made, "Lambda::Function")


def environment(made: dict[str, Any]) -> dict[str, Any]:
    variables: dict[str, Any] = function(made)["Environment"]["Variables"]
    return variables


def test_partial_batches_are_reported() -> None:
    assert mapping(template())["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_the_mapping_feeds_the_function_from_the_queue() -> None:
    made = template(batch_size="20", batch_window="3", concurrency="7")
    feed = mapping(made)
    assert feed["EventSourceArn"] == {"Fn::GetAtt": [named(made, "SQS::Queue", "Jobs")[0], "Arn"]}
    assert feed["FunctionName"] == {"Ref": next(iter(resources(made, "Lambda::Function")))}
    assert feed["ScalingConfig"] == {"MaximumConcurrency": 7}
    assert (feed["BatchSize"], feed["MaximumBatchingWindowInSeconds"]) == (20, 3)
    assert feed.get("Enabled", True)


@pytest.mark.parametrize("context", [{}, {"timeout": "30"}, {"timeout": "900", "batch_window": "300"}], ids=str)
def test_visibility_is_six_times_the_timeout_and_the_window(context: dict[str, str]) -> None:
    made = template(**context)
    window = mapping(made).get("MaximumBatchingWindowInSeconds", 0)
    assert queue(made)["VisibilityTimeout"] >= 6 * function(made)["Timeout"] + window


def test_the_queue_s_own_burial_is_a_backstop() -> None:
    made = template()
    redrive = queue(made)["RedrivePolicy"]
    assert redrive["deadLetterTargetArn"] == {"Fn::GetAtt": [named(made, "SQS::Queue", "DeadLetters")[0], "Arn"]}
    assert redrive["maxReceiveCount"] == 100
    assert redrive["maxReceiveCount"] > int(environment(made)["MAX_ATTEMPTS"])
    assert "RedrivePolicy" not in dead_letters(made)


@pytest.mark.parametrize(("fifo", "name"), [("false", "jobs-1"), ("true", "jobs-1.fifo")])
def test_a_dead_letter_queue_of_a_named_queue_takes_letters_of_that_queue_alone(fifo: str, name: str) -> None:
    made = template(queue_name="jobs-1", fifo=fifo)
    assert queue(made)["QueueName"] == name
    allowed = dead_letters(made)["RedriveAllowPolicy"]
    (source,) = allowed["sourceQueueArns"]
    assert allowed["redrivePermission"] == "byQueue"
    assert source["Fn::Join"][1][-1] == f":{name}"
    assert "QueueName" not in queue(template()), "a stack that exists keeps its queue"


@pytest.mark.parametrize("name", ["", "a.fifo", "a b", "x" * 76])
def test_a_name_that_sqs_does_not_take_stops_the_synth(name: str) -> None:
    with pytest.raises(WorkerPropsError, match="queue-name="):
        template(queue_name=name)


def test_records_outlive_messages() -> None:
    made = template(retention="20", queue_retention="6", dead_letter_retention="9")
    days = 86_400
    assert queue(made)["MessageRetentionPeriod"] == 6 * days
    assert dead_letters(made)["MessageRetentionPeriod"] == 9 * days
    assert int(environment(made)["IDEMPOTENCY_EXPIRES_AFTER_SECONDS"]) == 20 * days


def test_the_table() -> None:
    table = only(template(), "DynamoDB::Table")
    assert table["KeySchema"] == [{"AttributeName": "id", "KeyType": "HASH"}]
    assert table["AttributeDefinitions"] == [{"AttributeName": "id", "AttributeType": "S"}]
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expiration", "Enabled": True}
    assert table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True
    assert table["SSESpecification"]["SSEEnabled"] is True


def test_the_function() -> None:
    made = template(memory="1024", timeout="30")
    worker = function(made)
    assert (worker["Runtime"], worker["Architectures"]) == ("python3.13", ["arm64"])
    assert (worker["MemorySize"], worker["Timeout"]) == (1024, 30)
    assert worker["Handler"] == "entrypoints.sqs_worker.handler"
    assert worker["LoggingConfig"]["LogGroup"] == {"Ref": next(iter(resources(made, "Logs::LogGroup")))}
    assert worker["Role"] == {"Fn::GetAtt": [next(iter(resources(made, "IAM::Role"))), "Arn"]}
    assert "ReservedConcurrentExecutions" not in worker
    assert "CapacityProviderConfig" not in worker
    assert "DeadLetterConfig" not in worker


def test_the_other_processor() -> None:
    made = template(architecture="x86_64")
    assert function(made)["Architectures"] == ["x86_64"]
    assert function(made)["Code"] != function(template())["Code"]


def test_the_function_is_told_where_things_are_and_how_to_work() -> None:
    made = template(
        namespace="billing", job_concurrency="4", margin="6", grace="40", max_attempts="3", log_error_messages="true"
    )
    told = environment(made)
    assert told["IDEMPOTENCY_TABLE"] == {"Ref": next(iter(resources(made, "DynamoDB::Table")))}
    assert told["DEAD_LETTER_QUEUE_URL"] == {"Ref": named(made, "SQS::Queue", "DeadLetters")[0]}
    assert told["POWERTOOLS_SERVICE_NAME"] == "LambdaIdempotencyStack"
    assert {name: told[name] for name in told if name.split("_")[-1] in ("NAMESPACE", "CONCURRENCY", "ATTEMPTS")} == {
        "IDEMPOTENCY_NAMESPACE": "billing",
        "POWERTOOLS_METRICS_NAMESPACE": "onejob",
        "JOB_CONCURRENCY": "4",
        "MAX_ATTEMPTS": "3",
    }
    assert (told["DEADLINE_MARGIN_SECONDS"], told["LEASE_GRACE_SECONDS"]) == ("6", "40")
    assert told["LOG_ERROR_MESSAGES"] == "true"
    assert environment(template())["LOG_ERROR_MESSAGES"] == "false"


def test_reserved_concurrency_when_told() -> None:
    assert function(template(reserved_concurrency="12"))["ReservedConcurrentExecutions"] == 12


def test_its_logs_are_kept_for_a_while() -> None:
    assert only(template(), "Logs::LogGroup")["RetentionInDays"] == 30
    assert only(template(log_retention="365"), "Logs::LogGroup")["RetentionInDays"] == 365


HOLDS_DATA = ("SQS::Queue", "DynamoDB::Table", "Logs::LogGroup")


@pytest.mark.parametrize(("stage", "policy"), [("dev", "Delete"), ("prod", "RetainExceptOnCreate")])
def test_the_stage_decides_what_becomes_of_data(stage: str, policy: str) -> None:
    made = template(stage=stage)
    kept = [one for kind in HOLDS_DATA for one in resources(made, kind).values()]
    assert len(kept) == 4
    assert {one["DeletionPolicy"] for one in kept} == {policy}
    assert {one["UpdateReplacePolicy"] for one in kept} == {policy.removesuffix("ExceptOnCreate")}
    assert only(made, "DynamoDB::Table")["DeletionProtectionEnabled"] is (stage == "prod")


def test_a_deployment_of_dev_never_touches_prod() -> None:
    services = [environment(template(stage=stage))["POWERTOOLS_SERVICE_NAME"] for stage in ("dev", "prod")]
    assert services == ["LambdaIdempotencyStack", "LambdaIdempotencyStack-prod"]


def test_prod_without_anybody_to_call_is_a_warning() -> None:
    for context, warned in (
        ({}, False),
        ({"stage": "prod"}, True),
        ({"stage": "prod", "alarm-email": "o@x.org"}, False),
    ):
        root = app(context)
        stack(root, context)
        root.synth()
        written = "".join(path.read_text() for path in folder_of(root).glob("*.json"))
        assert ("alarm-email is not set" in written) is warned


def test_fifo() -> None:
    made = template(fifo="true")
    for one in (queue(made), dead_letters(made)):
        assert one["FifoQueue"] is True
        assert one.get("ContentBasedDeduplication", False) is False
    assert "MaximumBatchingWindowInSeconds" not in mapping(made)
    assert "FifoQueue" not in queue(template())


def test_queues_are_encrypted_and_take_no_plain_text_connections() -> None:
    made = template()
    assert queue(made)["SqsManagedSseEnabled"] is dead_letters(made)["SqsManagedSseEnabled"] is True
    refusing = set()
    for policy in resources(made, "SQS::QueuePolicy").values():
        (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
        assert (statement["Effect"], statement["Principal"]) == ("Deny", {"AWS": "*"})
        assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        refusing |= {one["Ref"] for one in policy["Properties"]["Queues"]}
    assert refusing == set(resources(made, "SQS::Queue"))


def test_a_key_of_yours_encrypts_queues_and_table() -> None:
    made = template(key_arn=KEY)
    assert queue(made)["KmsMasterKeyId"] == dead_letters(made)["KmsMasterKeyId"] == KEY
    assert only(made, "DynamoDB::Table")["SSESpecification"]["KMSMasterKeyId"] == KEY


def test_the_outputs() -> None:
    made = template()
    outputs = {name: one["Value"] for name, one in made["Outputs"].items()}
    assert outputs == {
        "QueueUrl": {"Ref": named(made, "SQS::Queue", "Jobs")[0]},
        "DeadLetterQueueUrl": {"Ref": named(made, "SQS::Queue", "DeadLetters")[0]},
        "IdempotencyTableName": {"Ref": next(iter(resources(made, "DynamoDB::Table")))},
        "WorkerLogGroupName": {"Ref": next(iter(resources(made, "Logs::LogGroup")))},
        "WorkerFunctionName": {"Ref": next(iter(resources(made, "Lambda::Function")))},
        "EventSourceMappingId": {"Ref": next(iter(resources(made, "Lambda::EventSourceMapping")))},
    }


def test_two_stacks_do_not_mix_their_metrics() -> None:
    assert environment(template(stack_name="billing"))["POWERTOOLS_SERVICE_NAME"] == "billing"


@pytest.mark.parametrize(
    ("context", "named_values"),
    [
        ({"visibility": "300"}, ("visibility=300", "timeout=60")),
        ({"max_receives": "5"}, ("max-receives=5", "20")),
        ({"concurrency": "20", "reserved_concurrency": "10"}, ("concurrency=20", "reserved-concurrency=10")),
    ],
    ids=str,
)
def test_a_wrong_combination_makes_no_template(context: dict[str, str], named_values: tuple[str, ...]) -> None:
    with pytest.raises(WorkerPropsError) as refused:
        template(**context)
    assert all(value in str(refused.value) for value in named_values)
