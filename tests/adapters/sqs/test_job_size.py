"""A job's message is measured as it is sent, and leaves room for a dead letter's note."""

import pytest

from adapters.sqs.dead_letter import MAX_BYTES, make_dead_letter
from adapters.sqs.job_size import MAX_JOB_BYTES, check_job_size
from adapters.sqs.message import Message
from adapters.sqs.notes import ATTRIBUTE, MAX_NOTE_BYTES
from domain.errors import InvalidJobError
from domain.outcome import Rejected
from tests.support.notes import NOTES


@pytest.mark.parametrize("filling", ["x", "\x7f", "ä", "\ufffd", "\U0001f600"])
def test_to_the_byte_of_utf_8(filling: str) -> None:
    size = len(filling.encode())
    body = "x" * (MAX_JOB_BYTES % size) + filling * (MAX_JOB_BYTES // size)
    check_job_size(body[1:])
    check_job_size(body)
    with pytest.raises(InvalidJobError, match=f"{MAX_JOB_BYTES + 1} bytes in the queue: at most {MAX_JOB_BYTES}") as no:
        check_job_size(f"{body}x")
    assert no.value.reason == "too_large"


def test_beside_the_largest_job_the_longest_note_has_room_and_not_a_byte_more() -> None:
    def note(body_bytes: int, receives: int) -> str:
        message = Message("1" * 100, "handle", "x" * body_bytes, "arn:aws:sqs:us-east-1:000000000000:jobs", receives)
        letter = make_dead_letter(message, Rejected("r" * 100, "d" * 300, "e" * 100, 5), "q" * 100, "o" * 64, NOTES)
        return str(letter.attributes[ATTRIBUTE]["StringValue"])

    shorter = len(note(MAX_JOB_BYTES, 1))
    longest = 10 ** (MAX_NOTE_BYTES - shorter)
    assert len(note(MAX_JOB_BYTES, longest)) == MAX_NOTE_BYTES
    assert '"detail"' in note(MAX_JOB_BYTES, longest)
    assert '"detail"' not in note(MAX_JOB_BYTES + 1, longest)
    assert MAX_JOB_BYTES < MAX_BYTES
