"""Lines of a file of jobs: plain or gzip, from a path or standard input, one at a time however long the file."""

import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from select import POLLIN, poll
from stat import S_ISDIR, S_ISREG
from typing import Any, Final

from adapters.standard_input import of_stream

MAX_LINE_BYTES: Final = 1024 * 1024
"""As large as an SQS message may be; a longer line is reported and passed over, never held whole."""

CHUNK: Final = 64 * 1024
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP: Final = 16 + zlib.MAX_WBITS


class UnreadableFileError(Exception):
    """The file cannot be opened, or ends in the middle; the text says which and why."""


class _StoppedError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Line:
    """`number` counts from 1. `raw` is empty for a line that is too long; `text` is None where the bytes cannot be
    read, and `problem` says why. `position` is how many bytes of the file (as stored) have been read.
    """

    number: int
    raw: bytes
    text: str | None
    problem: str | None
    position: int


@dataclass(slots=True)
class JobLines:
    """An open file of jobs. `size` is in bytes as stored; None where it is not known beforehand. `state` is that of the
    file; None where there is none.

    Reads a descriptor and not a buffered file: a reader that waits for a pipe can be told to stop, and holds nothing
    that the end of the process would wait for.
    """

    name: str
    state: os.stat_result | None
    _source: Any
    _wake: tuple[int, int] = field(default_factory=os.pipe)
    _position: int = 0

    @property
    def size(self) -> int | None:
        return self.state.st_size if self.state is not None and S_ISREG(self.state.st_mode) else None

    def stop(self) -> None:
        """No more lines; from any thread or signal handler."""
        os.write(self._wake[1], b"x")

    def close(self) -> None:
        """Only when nobody reads any more."""
        for descriptor in self._wake:
            os.close(descriptor)

    def __iter__(self) -> Iterator[Line]:
        """Every line that is not blank, until the end or `stop`. Raises `UnreadableFileError` where it breaks off."""
        with suppress(_StoppedError):
            yield from self._lines()

    def _lines(self) -> Iterator[Line]:
        number, begun, is_too_long = 0, bytearray(), False
        for chunk in self._content():
            *endings, rest = chunk.split(b"\n")
            for ending in endings:
                number += 1
                begun += ending
                if is_too_long or len(begun) > MAX_LINE_BYTES:
                    is_too_long = False
                    yield self._too_long(number)
                elif begun.strip():
                    yield self._line(number, bytes(begun + b"\n"))
                begun.clear()
            begun += rest
            if len(begun) > MAX_LINE_BYTES:
                begun.clear()
                is_too_long = True
        if is_too_long:
            yield self._too_long(number + 1)
        elif begun.strip():
            yield self._line(number + 1, bytes(begun))

    def _line(self, number: int, raw: bytes) -> Line:
        try:
            return Line(number, raw, raw.decode(), None, self._position)
        except UnicodeDecodeError as error:
            return Line(number, raw, None, f"no UTF-8 at byte {error.start}", self._position)

    def _too_long(self, number: int) -> Line:
        return Line(number, b"", None, f"longer than {MAX_LINE_BYTES} bytes", self._position)

    def _content(self) -> Iterator[bytes]:
        head = b""
        while len(head) < len(_GZIP_MAGIC) and (chunk := self._read()):
            head += chunk
        if not head.startswith(_GZIP_MAGIC):
            yield head
            while chunk := self._read():
                yield chunk
            return
        try:
            yield from self._unpacked(head)
        except zlib.error as error:
            raise UnreadableFileError(f"{self.name}: {error}") from error

    def _unpacked(self, packed: bytes) -> Iterator[bytes]:
        """Members of gzip one after another (RFC 1952), zeros between them, each given out as far as it has come."""
        while packed := packed or self._read():
            packed = packed.lstrip(b"\0")
            if not packed:
                continue
            member = zlib.decompressobj(_GZIP)
            while not member.eof:
                content = member.decompress(packed, CHUNK)
                packed = member.unconsumed_tail
                yield content
                if not member.eof and not packed and len(content) < CHUNK and not (packed := self._read()):
                    raise UnreadableFileError(f"{self.name}: the gzip file ends in the middle")
            packed = member.unused_data

    def _read(self) -> bytes:
        """The next bytes as soon as there are any; none at the end. Raises `_StoppedError`."""
        try:
            if isinstance(self._source, int):
                waiting = poll()
                for descriptor in (self._source, self._wake[0]):
                    waiting.register(descriptor, POLLIN)
                if self._wake[0] in dict(waiting.poll()):
                    raise _StoppedError
                chunk = os.read(self._source, CHUNK)
            else:
                chunk = self._source.read(CHUNK)
        except OSError as error:
            raise UnreadableFileError(f"{self.name}: {error.strerror}") from error
        self._position += len(chunk)
        return chunk


@contextmanager
def open_jobs(name: str, source: Any = ...) -> Iterator[JobLines]:
    """Open a path, or `-` for standard input; gzip is recognised by its first bytes. Raises `UnreadableFileError`.

    `source` is what is read instead, and `name` then what the user calls it: a path, a descriptor or a stream (which
    stay open), None for a closed one (`standard_input_withheld`).
    """
    if source is ...:
        source = of_stream(name)
    if source is None:
        raise UnreadableFileError(f"{name}: standard input is closed")
    with ExitStack() as stack:
        try:
            if isinstance(source, str):
                source = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
                stack.callback(os.close, source)
            state = os.fstat(source) if isinstance(source, int) else None
        except (OSError, ValueError) as error:
            raise UnreadableFileError(f"{name}: {getattr(error, 'strerror', None) or error}") from error
        if state is not None and S_ISDIR(state.st_mode):
            raise UnreadableFileError(f"{name}: Is a directory")
        jobs = JobLines(name, state, source)
        stack.callback(jobs.close)
        yield jobs
