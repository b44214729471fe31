"""Lines of a file of jobs: plain or gzip, from a path or standard input, one at a time however long the file."""

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

MAX_LINE_BYTES: Final = 1024 * 1024
"""As large as an SQS message may be; a longer line is reported and passed over, never held whole."""

_GZIP_MAGIC: Final = b"\x1f\x8b"


class UnreadableFileError(Exception):
    """The file cannot be opened, or ends in the middle; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Line:
    """`number` counts from 1. `text` is None where the bytes are no UTF-8, or too many. `position` is how many bytes
    of the file (as stored) have been read.
    """

    number: int
    raw: bytes
    text: str | None
    problem: str | None
    position: int


@dataclass(frozen=True, slots=True)
class JobLines:
    """An open file of jobs. `size` is in bytes as stored; None where it is not known beforehand."""

    name: str
    size: int | None
    _stored: BinaryIO
    _content: BinaryIO

    def __iter__(self) -> Iterator[Line]:
        """Every line that is not blank. Raises `UnreadableFileError` where the rest cannot be read."""
        number, overlong = 0, False
        while chunk := self._next():
            continues, overlong = overlong, not chunk.endswith(b"\n") and len(chunk) > MAX_LINE_BYTES
            if continues:
                continue
            number += 1
            if overlong:
                yield Line(number, chunk, None, f"longer than {MAX_LINE_BYTES} bytes", self._position())
            elif chunk.strip():
                yield self._line(number, chunk)

    def _next(self) -> bytes:
        try:
            return self._content.readline(MAX_LINE_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise UnreadableFileError(f"{self.name}: {error}") from error

    def _line(self, number: int, raw: bytes) -> Line:
        try:
            return Line(number, raw, raw.decode(), None, self._position())
        except UnicodeDecodeError as error:
            return Line(number, raw, None, f"no UTF-8 at byte {error.start}", self._position())

    def _position(self) -> int:
        return self._stored.tell() if self.size is not None else 0


@contextmanager
def open_jobs(source: str) -> Iterator[JobLines]:
    """A path, or `-` for standard input; gzip is recognised by its first bytes. Raises `UnreadableFileError`."""
    with ExitStack() as stack:
        try:
            stored: Any = sys.stdin.buffer if source == "-" else stack.enter_context(Path(source).open("rb"))
            size = Path(source).stat().st_size if source != "-" and Path(source).is_file() else None
            if not hasattr(stored, "peek"):
                stored = io.BufferedReader(stored)
            packed = stored.peek(2)[:2] == _GZIP_MAGIC
        except OSError as error:
            raise UnreadableFileError(f"{source}: {error.strerror}") from error
        content: Any = gzip.GzipFile(fileobj=stored) if packed else stored
        yield JobLines(source, size, stored, content)
