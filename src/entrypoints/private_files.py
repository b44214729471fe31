"""Files that hold what is nobody else's: payloads, keys, logs. Mode 0600, and a link in their place is not followed."""

import os
import re
import stat
from contextlib import suppress
from errno import EISDIR, ELOOP, EPERM
from io import FileIO
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from adapters.folders import make_folder

MODE = 0o600
_OF_THE_SYSTEM = re.compile(r"/dev|/proc/\d+(/task/\d+)?/fd")
"""Folders whose links nobody else makes, as /dev/stdout."""


def private_folder(folder: Path) -> None:
    """Make it, and what is missing above it, with mode 0700, which it gets also if it is there and ours. Raises
    `OSError`; `PermissionError` for one that belongs to another user.
    """
    make_folder(folder)
    if (owner := folder.stat().st_uid) == os.geteuid():
        folder.chmod(0o700)
    elif os.geteuid() != 0:
        raise PermissionError(EPERM, f"belongs to another user ({owner})", str(folder))


def open_private(path: Path, mode: str = "w") -> IO[Any]:
    """Open it for writing (`w`, `a`), for its owner only, also where it is there already. Raises `OSError`: ELOOP for
    a link, EPERM for a file of somebody else's.
    """
    flags = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags | (os.O_APPEND if "a" in mode else 0), MODE)
    try:
        os.fchmod(descriptor, MODE)
        if "a" not in mode:
            os.ftruncate(descriptor, 0)
        return os.fdopen(descriptor, mode)
    except BaseException:
        os.close(descriptor)
        raise


class Replacement:
    """A file that takes a name when it is finished, in one step; until then what had the name stays as it is.

    What has the name is never written to, whatever it is or links to, but for a device, a FIFO of this user's, and
    where a link of the system's leads (/dev/stdout): those are written to at once.
    """

    def __init__(self, path: Path) -> None:
        """Raises `OSError`: EISDIR for a folder, ELOOP for a link, EPERM for a FIFO or device of another user's."""
        self._path = path
        self._folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # whatever becomes of the path
        self._aside: str | None = None
        try:
            self._file = self._opened()
        except BaseException:
            os.close(self._folder)
            raise

    def _opened(self) -> FileIO:
        """Unbuffered: what fails, fails where it is written."""
        state = _written_to_at_once(self._path, self._folder)
        if state is not None:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            if not os.path.samestat(os.fstat(descriptor), state):
                os.close(descriptor)
                raise OSError(ELOOP, "was replaced by something else")
        else:
            self._aside = f".{self._path.name[:200]}.{uuid4().hex}"
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self._aside, flags, MODE, dir_fd=self._folder)
        return FileIO(descriptor, "w")

    def write(self, content: bytes) -> None:
        """Raises `OSError`."""
        while content:
            content = content[self._file.write(content) :]

    def finish(self) -> None:
        """Take the name. Raises `OSError`; what was written is then in the file that its text names."""
        if self._aside is None:
            return
        try:
            os.rename(self._aside, self._path.name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}; what was written is in {self._aside}") from error
        finally:
            self._aside = None

    def discard(self) -> None:
        """Leave nothing behind; not after `finish`."""
        if self._aside is not None:
            os.unlink(self._aside, dir_fd=self._folder)
            self._aside = None

    def close(self) -> None:
        with suppress(OSError):  # of a device: it has been told of by `write`
            self._file.close()
        os.close(self._folder)


def _written_to_at_once(path: Path, folder: int) -> os.stat_result | None:
    """The state of a device or FIFO of that name. Raises `OSError` where the name is no file's."""
    try:
        state = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(state.st_mode):
        if not _OF_THE_SYSTEM.fullmatch(os.path.realpath(path.parent)):
            raise OSError(ELOOP, "is a link")
        return path.stat()
    if stat.S_ISDIR(state.st_mode):
        raise OSError(EISDIR, os.strerror(EISDIR))
    if stat.S_ISREG(state.st_mode):
        return None
    if stat.S_ISFIFO(state.st_mode) and state.st_uid not in (0, os.geteuid()):
        raise OSError(EPERM, f"belongs to another user ({state.st_uid})")
    return state


def write_private(path: Path, text: str) -> None:
    """Put a file with that text in the place of whatever has the name, in one step. Raises `OSError`."""
    file = Replacement(path)
    try:
        file.write(text.encode())
        file.finish()
    except BaseException:
        file.discard()
        raise
    finally:
        file.close()
