"""Many threads share one flush, and none is told that it landed before it did."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Event, Thread

import pytest

from adapters.stores.sqlite.group_commit import GroupCommit


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


def run_together(group: GroupCommit, *works: "object") -> list[object]:
    """The value or the error of each, in one transaction and in this order: they line up behind a first one."""
    begun, go, told = Event(), Event(), dict[int, object]()

    def slow(connection: sqlite3.Connection) -> None:
        begun.set()
        assert go.wait(10)

    def run(number: int) -> None:
        try:
            told[number] = group.run(works[number])  # type: ignore[arg-type]
        except Exception as error:
            told[number] = error

    threads = [Thread(target=group.run, args=(slow,))]
    threads[0].start()
    assert begun.wait(10)
    for number in range(len(works)):
        threads.append(Thread(target=run, args=(number,)))
        threads[-1].start()
        while len(group._waiting) <= number:
            pass
    go.set()
    for thread in threads:
        thread.join(10)
    return [told[number] for number in range(len(works))]


def refused_where(number: int) -> "object":
    """As a store refuses what it finds taken."""

    def work(connection: sqlite3.Connection) -> None:
        if number in rows(connection):
            raise LookupError(f"{number} is taken")

    return work


def found(number: int) -> "object":
    """As a store answers from what it finds."""
    return lambda connection: f"{number} is there" if number in rows(connection) else None


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


def test_a_refusal_judged_on_rows_that_were_rolled_back_is_not_told(connection: sqlite3.Connection) -> None:
    group = GroupCommit(connection)
    group.run(insert(1))  # type: ignore[arg-type]
    told = run_together(group, insert(5), refused_where(5), insert(1))
    assert [type(each) for each in told] == [sqlite3.OperationalError] * 3
    assert rows(connection) == [1]


def test_an_answer_judged_on_rows_that_were_rolled_back_is_not_told(connection: sqlite3.Connection) -> None:
    group = GroupCommit(connection)
    group.run(insert(1))  # type: ignore[arg-type]
    told = run_together(group, insert(5), found(5), insert(1))
    assert [type(each) for each in told] == [sqlite3.OperationalError] * 3


def test_a_commit_that_fails_fails_every_piece(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("CREATE TABLE u (n REFERENCES t DEFERRABLE INITIALLY DEFERRED)")
    group = GroupCommit(connection)
    told = run_together(group, insert(5), lambda opened: opened.execute("INSERT INTO u VALUES (9)").rowcount, found(5))
    assert [str(each) for each in told] == ["FOREIGN KEY constraint failed"] * 3
    assert rows(connection) == []
    assert group.run(insert(7)) == 7  # type: ignore[arg-type]


def test_a_refused_piece_neither_stops_nor_fails_those_that_share_its_commit(connection: sqlite3.Connection) -> None:
    group = GroupCommit(connection)
    first, refused, second = run_together(group, insert(5), refused_where(5), insert(6))
    assert (first, str(refused), second) == (5, "5 is taken", 6)
    assert rows(connection) == [5, 6]
