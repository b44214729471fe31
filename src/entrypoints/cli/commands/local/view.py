"""What `onejob local up` prints: the stack's names, and lines to type."""

import shlex
from collections.abc import Iterator

from entrypoints.emulator.deployment import DeployedWorker
from entrypoints.emulator.launcher import Emulator

_JOB = '{"job_id":"job-001"}'


def how_to_use(aws: Emulator, worker: DeployedWorker) -> str:
    """The names of the stack's parts, the commands of `onejob local`, and lines for the AWS command line.

    Both versions of the AWS command line understand these lines, and none of them reads or writes a profile.
    """
    lines = "\n".join(f"  {line}" for line in (*_shell_lines(aws), *_aws_lines(aws, worker)))
    return f"""
queue            {worker.queue_url}
dead letters     {worker.dead_letter_queue_url}
table            {worker.table}
function         {worker.function}
log group        {worker.log_group}

send a job       onejob local send '{_JOB}'
watch            onejob local logs --follow
deploy again     onejob local up
stop             onejob local down

the same with the aws command line, version 1 or 2, in a shell of its own (the first two lines are for SDKs, too):
{lines}"""


def _shell_lines(aws: Emulator) -> Iterator[str]:
    """Replace every `AWS_*` of the user by the emulator's. With an empty `AWS_PAGER` version 2 opens no pager."""
    exported = aws.environment() | {"AWS_PAGER": "", "no_proxy": "127.0.0.1,localhost"}
    yield "unset AWS_PROFILE $(env | grep -o '^AWS_[A-Z0-9_]*')"
    yield "export " + " ".join(f"{name}={value}" for name, value in exported.items())


def _aws_lines(aws: Emulator, worker: DeployedWorker) -> Iterator[str]:
    """Version 1 ignores `AWS_ENDPOINT_URL` where it sends SQS requests, so each line names the endpoint."""
    command = f"aws --endpoint-url {aws.url}"
    is_fifo = worker.queue_url.endswith(".fifo")
    send = f"{command} sqs send-message --queue-url {shlex.quote(worker.queue_url)} --message-body '{_JOB}'"
    for number in (1, 2):
        yield send + (f" --message-group-id local --message-deduplication-id {number}" if is_fifo else "")
    yield (
        f"{command} logs filter-log-events --log-group-name {shlex.quote(worker.log_group)} "
        "--filter-pattern '\"job-001\"' --query 'events[].[message]' --output text"
    )
    yield (
        f"{command} dynamodb scan --table-name {shlex.quote(worker.table)} "
        "--query 'Items[].[job_id.S,status.S]' --output text"
    )
