"""What `onejob doctor` looks at in a SQLite file of records. Nothing in it is changed."""

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from adapters.stores.sqlite.database import MIGRATIONS, UnusableDatabaseError, check_ours, check_owners
from adapters.stores.sqlite.file_system import remote_file_system
from entrypoints.cli.commands.doctor.finding import Finding, fail, judged, ok, warn


def file_findings(path: Path) -> Iterator[Finding]:
    """Whether it is there, sound, of a version that this onejob knows, and closed to others."""
    subject = f"file {path}"
    if not path.exists():
        yield warn(subject, "is not there; the first run makes it", "run a job, or name another one with --db")
        return
    try:
        check_owners(path)
    except UnusableDatabaseError as error:
        yield fail(
            subject,
            str(error).removeprefix(f"{path}: "),
            "chown it if you trust what is in it, or name another one with --db",
        )
        return
    if kind := remote_file_system(path):
        yield warn(subject, f"is on a network file system ({kind}), which keeps no locks", "use a local disk")
    for place, most in ((path, 0o600), (path.parent, 0o700)):
        mode = stat.S_IMODE(place.stat().st_mode)
        if mode & ~most & 0o077:
            yield warn(f"mode of {place}", f"{mode:o}: other users may look into it", f"chmod {most:o} {place}")
        else:
            yield ok(f"mode of {place}", f"{mode:o}")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            yield from _inside(subject, path, connection)
    except sqlite3.Error as error:
        yield fail(subject, f"{error}", "move it away, or name another one with --db")


def _inside(subject: str, path: Path, connection: sqlite3.Connection) -> Iterator[Finding]:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        yield fail(subject, f"schema {version}, known are up to {len(MIGRATIONS)}", "upgrade onejob")
    else:
        try:
            check_ours(connection, path)
        except UnusableDatabaseError as error:
            yield fail(
                subject, str(error).removeprefix(f"{path}: "), "drop what was added, or name another one with --db"
            )
            return
        yield ok(subject, f"schema {version}, SQLite {sqlite3.sqlite_version}")
    problems = [row[0] for row in connection.execute("PRAGMA integrity_check(3)")]
    yield judged(
        subject,
        problems == ["ok"],
        f"integrity: {'; '.join(problems)}",
        "move it away; what it remembered would run again: copy out what is sound with sqlite3's .recover first",
    )
    if problems == ["ok"] and version:
        count = connection.execute("SELECT count(*) FROM record").fetchone()[0]
        yield ok(subject, f"{count:,} records")
