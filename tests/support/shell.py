"""A shell in which a test types lines, one after another, as a user does."""

import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from select import select

WITHIN_SECONDS = 60


@dataclass(frozen=True)
class Shell:
    """A bash with exactly the environment that it was given. Variables and functions stay from line to line."""

    process: "subprocess.Popen[bytes]"

    def type(self, line: str) -> str:
        """What the line prints, on both streams. Raises AssertionError if it fails or does not end."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{{ {line}\n}} </dev/null 2>&1; printf '\\0%s\\n' $?\n".encode())
        self.process.stdin.flush()
        deadline, read = time.monotonic() + WITHIN_SECONDS, b""
        while not (b"\0" in read and read.endswith(b"\n")):
            left = deadline - time.monotonic()
            assert select([self.process.stdout], [], [], max(0, left))[0], f"{line}\ndoes not end"
            more = os.read(self.process.stdout.fileno(), 65_536)
            assert more, f"{line}\nended the shell: {read.decode()}"
            read += more
        output, _, status = read.decode().rpartition("\0")
        assert int(status) == 0, f"{line}\nexit status {status.strip()}: {output}"
        return output


@contextmanager
def shell(environment: Mapping[str, str], folder: Path) -> Iterator[Shell]:
    """One that starts in a folder."""
    with subprocess.Popen(
        ["bash", "--norc", "--noprofile"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(environment),
        cwd=folder,
    ) as process:
        try:
            yield Shell(process)
        finally:
            process.kill()
