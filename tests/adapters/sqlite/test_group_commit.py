"""Many threads share one flush, and none is told that it landed before it did."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Event, Thread

import pytest

from adapters.sqlite.group_commit import GroupCommit


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(tmp_path / "x.sqlite", isolation_level=None, check_same_thread=False)
    made.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)")
    yield made
    made.close()


def insert(number: int) -> "object":
    def work(connection: sqlite3.Connection) -> int:
        connection.execute("INSERT INTO t VALUES (?)", (number,))
        return number

    return work


def rows(connection: sqlite3.Connection) -> list[int]:
    return [row[0] for row in connection.execute("SELECT n FROM t ORDER BY n")]


def test_work_is_committed_when_its_value_is_given(connection: sqlite3.Connection) -> None:
    group = GroupCommit(connection)
    assert group.run(insert(1)) == 1  # type: ignore[arg-type]
    assert not connection.in_transaction
    assert rows(connection) == [1]


def test_those_who_wait_share_one_commit(connection: sqlite3.Connection) -> None:
    group, begun, go = GroupCommit(connection), Event(), Event()
    commits: list[str] = []
    connection.set_trace_callback(lambda statement: commits.append(statement) if statement == "COMMIT" else None)

    def slow(connection: sqlite3.Connection) -> None:
        begun.set()
        assert go.wait(10)

    first = Thread(target=group.run, args=(slow,))
    first.start()
    assert begun.wait(10)
    others = [Thread(target=group.run, args=(insert(number),)) for number in range(20)]
    for thread in others:
        thread.start()
    while len(group._waiting) < 20:
        pass
    go.set()
    for thread in [first, *others]:
        thread.join(10)
    assert rows(connection) == list(range(20))
    assert len(commits) == 2


def test_an_error_of_one_piece_is_its_callers_alone(connection: sqlite3.Connection) -> None:
    group, barrier = GroupCommit(connection), Barrier(8)
    refused: list[int] = []

    def refuse(connection: sqlite3.Connection) -> None:
        raise LookupError

    def run(number: int) -> None:
        barrier.wait()
        try:
            group.run(refuse if number % 2 else insert(number))  # type: ignore[arg-type]
        except LookupError:
            refused.append(number)

    threads = [Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(refused) == [1, 3, 5, 7]
    assert rows(connection) == [0, 2, 4, 6]


def test_an_error_of_sqlite_fails_every_piece_and_writes_nothing(connection: sqlite3.Connection) -> None:
    group = GroupCommit(connection)
    group.run(insert(1))  # type: ignore[arg-type]
    begun, go = Event(), Event()
    errors: list[str] = []

    def slow(connection: sqlite3.Connection) -> None:
        begun.set()
        assert go.wait(10)

    def run(number: int) -> None:
        try:
            group.run(insert(number))  # type: ignore[arg-type]
        except sqlite3.Error as error:
            errors.append(str(error))

    threads = [Thread(target=group.run, args=(slow,))]
    threads[0].start()
    assert begun.wait(10)
    threads += [Thread(target=run, args=(number,)) for number in (5, 1, 6)]
    for thread in threads[1:]:
        thread.start()
    while len(group._waiting) < 3:
        pass
    go.set()
    for thread in threads:
        thread.join(10)
    assert errors == ["UNIQUE constraint failed: t.n"] * 3
    assert rows(connection) == [1]
    assert group.run(insert(7)) == 7  # type: ignore[arg-type]


def test_an_interrupt_lets_nobody_believe_that_it_landed(connection: sqlite3.Connection) -> None:
    group = GroupCommit(connection)

    def interrupted(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (1)")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        group.run(interrupted)
    assert rows(connection) == []
    assert group.run(insert(2)) == 2  # type: ignore[arg-type]
