"""Lines of a file, whatever they hold: numbered, decoded or reported, and never held whole."""

import gzip
import io
import json
import os
import time
import tracemalloc
from pathlib import Path
from threading import Thread

import pytest

from adapters.files.lines import MAX_LINE_BYTES, JobLines, Line, UnreadableFileError, open_jobs


def read(source: Path | str) -> list[Line]:
    with open_jobs(str(source)) as jobs:
        return list(jobs)


def write(tmp_path: Path, content: bytes, *, packed: bool = False) -> Path:
    path = tmp_path / "jobs.jsonl"
    path.write_bytes(gzip.compress(content) if packed else content)
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_lines_are_numbered_and_blank_ones_passed_over(tmp_path: Path, packed: bool) -> None:
    path = write(tmp_path, b'{"job_id":"1"}\n\n  \r\n{"job_id":"2"}\r\nlast', packed=packed)
    assert [(line.number, line.text) for line in read(path)] == [
        (1, '{"job_id":"1"}\n'),
        (4, '{"job_id":"2"}\r\n'),
        (5, "last"),
    ]


def test_a_line_that_is_no_utf8_is_reported_and_the_rest_goes_on(tmp_path: Path) -> None:
    first, second = read(write(tmp_path, b'{"job_id":"\xff"}\n{"job_id":"2"}\n'))
    assert (first.text, first.problem, first.raw) == (None, "no UTF-8 at byte 11", b'{"job_id":"\xff"}\n')
    assert second.text == '{"job_id":"2"}\n'


def test_a_line_that_is_too_long_is_reported_once_and_the_rest_goes_on(tmp_path: Path) -> None:
    huge = b"x" * (3 * MAX_LINE_BYTES + 5)
    lines = read(write(tmp_path, b"a\n" + huge + b"\nb\n" + b"y" * MAX_LINE_BYTES + b"\nc"))
    assert [(line.number, line.problem) for line in lines] == [
        (1, None),
        (2, f"longer than {MAX_LINE_BYTES} bytes"),
        (3, None),
        (4, None),
        (5, None),
    ]


class Trickle(io.BytesIO):
    """A pipe into which little is written at a time."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size or 0, 16))


def test_a_line_that_comes_in_small_pieces_costs_no_more_than_its_size() -> None:
    line = b"x" * MAX_LINE_BYTES
    began = time.thread_time()
    lines = list(JobLines("-", None, Trickle(line + b"\n" + line + b"y\n1\n" + line)))
    assert time.thread_time() - began < 5, "seconds of the processor"
    assert [(one.number, one.raw) for one in lines] == [(1, line + b"\n"), (2, b""), (3, b"1\n"), (4, line)]


def test_a_line_before_many_empty_members_of_gzip_costs_no_more_than_its_size() -> None:
    packed = gzip.compress(b"x" * MAX_LINE_BYTES) + gzip.compress(b"") * 20_000
    began = time.thread_time()
    assert [len(line.raw) for line in JobLines("-", None, io.BytesIO(packed))] == [MAX_LINE_BYTES]
    assert time.thread_time() - began < 5, "seconds of the processor"


def test_the_position_is_that_in_the_stored_file(tmp_path: Path) -> None:
    path = write(tmp_path, b"aaaa\nbbbb\n")
    assert [line.position for line in read(path)] == [10, 10], "as far as it was read, for a progress bar"
    with open_jobs(str(path)) as jobs:
        assert jobs.size == 10


def test_standard_input_is_read_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BufferedReader(io.BytesIO(gzip.compress(b"a\nb\n")))

    monkeypatch.setattr("sys.stdin", Stdin)
    with open_jobs("-") as jobs:
        assert jobs.size is None
        assert [(line.number, line.text) for line in jobs] == [(1, "a\n"), (2, "b\n")]
    assert not Stdin.buffer.closed


def test_a_missing_file_and_a_folder_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match=r"nowhere\.jsonl: No such file"):
        read(tmp_path / "nowhere.jsonl")
    with pytest.raises(UnreadableFileError, match="Is a directory"):
        read(tmp_path)


@pytest.mark.parametrize("damage", ["cut", "garbled"])
def test_a_gzip_file_that_is_cut_or_garbled_says_so_after_its_sound_lines(tmp_path: Path, damage: str) -> None:
    content = "".join(json.dumps({"job_id": str(number)}) + "\n" for number in range(20_000)).encode()
    packed = bytearray(gzip.compress(content))
    packed = packed[: len(packed) // 2] if damage == "cut" else packed[:-4000] + b"\0" * 4000
    path = tmp_path / "jobs.gz"
    path.write_bytes(packed)
    seen: list[Line] = []
    with open_jobs(str(path)) as jobs, pytest.raises(UnreadableFileError, match=r"jobs\.gz: "):
        seen.extend(jobs)
    assert seen[-1].number > 1000


def test_memory_stays_flat_however_long_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, b'{"job_id":"1"}\n' * 200_000)
    tracemalloc.start()
    with open_jobs(str(path)) as jobs:
        for _ in jobs:
            pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000


def test_a_pipe_is_read_as_it_comes_packed_or_not() -> None:
    for pack in (bytes, gzip.compress):
        reading, writing = os.pipe()
        with open_jobs(f"/dev/fd/{reading}") as jobs:
            came = iter(jobs)
            os.write(writing, pack(b"a\n"))
            assert next(came).text == "a\n", "before there is more"
            os.write(writing, pack(b"b\nlast"))
            assert next(came).text == "b\n"
            os.close(writing)
            assert [line.text for line in came] == ["last"]
        os.close(reading)


def test_a_reader_that_waits_for_a_pipe_can_be_told_to_stop() -> None:
    reading, writing = os.pipe()
    with open_jobs(f"/dev/fd/{reading}") as jobs:
        seen: list[Line] = []
        waits = Thread(target=lambda: seen.extend(jobs))
        waits.start()
        os.write(writing, b"a\nhalf a line")
        jobs.stop()
        waits.join(10)
        assert not waits.is_alive()
    assert [line.text for line in seen] in (["a\n"], []), "half a line is none"
    os.close(reading)
    os.close(writing)


def test_closed_standard_input_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(UnreadableFileError, match="-: standard input is closed"):
        read("-")


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 65_536 * 3 + 1, 65_536 + 100, 131_072])
def test_gzip_of_any_size_is_read_to_its_end(tmp_path: Path, size: int) -> None:
    content = (b"a" * 258 + b"\n") * (size // 259 + 1)
    path = write(tmp_path, content[:size], packed=True)
    assert b"".join(line.raw for line in read(path)) == content[:size]


def test_members_of_gzip_and_zeros_after_them_are_one_file(tmp_path: Path) -> None:
    path = tmp_path / "jobs.gz"
    path.write_bytes(gzip.compress(b"a\nb") + gzip.compress(b"c\n") + b"\0" * 200_000)
    assert [line.text for line in read(path)] == ["a\n", "bc\n"]


def test_a_line_of_a_hundred_megabytes_is_passed_over_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "jobs.gz"
    with gzip.open(path, "wb", compresslevel=1) as packed:
        for _ in range(100):
            packed.write(b"x" * 1_000_000)
        packed.write(b"\nb\n")
    tracemalloc.start()
    assert [(line.number, line.text) for line in read(path)] == [(1, None), (2, "b\n")]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6_000_000


def test_a_folder_that_is_refused_leaves_no_descriptor_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with pytest.raises(UnreadableFileError):
            read(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before
