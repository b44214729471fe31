"""Writing to standard output and standard error: what an encoding lacks is replaced, and ends no work."""

import sys
from io import TextIOWrapper
from typing import Any, Final, Protocol

_REPLACED: Final = "backslashreplace"
"""`\\xfc` for what cannot be shown: two job ids stay two."""


class Writable(Protocol):
    """A text stream, as far as it is used here."""

    def write(self, text: str, /) -> Any: ...
    def flush(self) -> Any: ...
    def isatty(self) -> bool: ...


def replace_unencodable() -> None:
    """Have both streams write everything, in whatever encoding: for libraries and operations that print, too."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_REPLACED)


def write(stream: Writable | None, text: str) -> None:
    """Write and flush the text; on a stream that is closed from the start, nothing.

    The stream need not be the process's own: an operation may have put another in its place. Raises `OSError` where it
    takes no more, and `ValueError` where it was closed.
    """
    if stream is None:
        return
    try:
        stream.write(text)
    except UnicodeEncodeError as error:
        stream.write(text.encode(error.encoding, _REPLACED).decode(error.encoding))
    stream.flush()


def printable(text: str) -> str:
    """The text without what a terminal would obey."""
    return "".join(character if character.isprintable() else "�" for character in text)


def say(text: str) -> None:
    """A line on standard error."""
    write(sys.stderr, f"{printable(text)}\n")


def is_terminal(stream: Writable | None) -> bool:
    """Whether somebody watches it."""
    return stream is not None and stream.isatty()


def spinner(stream: Writable) -> str:
    """The name of Rich's spinner whose characters this terminal has."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return "dots" if encoding.lower().replace("-", "") == "utf8" else "line"
