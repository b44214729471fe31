"""The runner's decisions: what is taken, waited for, tried again, given up; and that all it holds is bounded."""

import json
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event, Lock, Thread

import pytest

from adapters.files.lines import Line, UnreadableFileError
from adapters.files.runner import AHEAD_OF_WORKERS, JobFileRunner, LineResult, Task
from adapters.files.traces import LastTraces
from adapters.sqs.envelope import unwrap_line
from adapters.stores.memory import MemoryIdempotencyStore
from adapters.system import SystemClock
from domain.answer import Answer
from domain.attempt import Attempt
from domain.errors import PermanentError
from domain.job import Job
from domain.job_factory import JobFactory
from domain.operation import OperationFunction
from domain.outcome import Deferred, Executed, Failed, Failure, Outcome, Rejected, Skipped
from domain.record import Acquired, Claim
from domain.service import JobService
from tests.support.clock import FakeClock
from tests.support.faulty_store import Fault, FaultyStore
from tests.support.jobs import counting_ids, died_with, operations
from tests.support.polling import until


@pytest.fixture(autouse=True)
def _no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.files.runner.ASK_AGAIN", timedelta(milliseconds=5))
    monkeypatch.setattr("adapters.files.runner.FIRST_BACKOFF", timedelta(milliseconds=5))
    monkeypatch.setattr("domain.service.FIRST_PAUSE", timedelta(milliseconds=1))


def lines(*texts: str) -> list[Line]:
    return [Line(number, f"{text}\n".encode(), text, None, 0) for number, text in enumerate(texts, 1)]


def job_lines(*job_ids: str) -> list[Line]:
    return lines(*(f'{{"job_id":"{job_id}"}}' for job_id in job_ids))


@dataclass
class Bench:
    """A runner over the real domain and the memory store."""

    operation: OperationFunction = lambda job, attempt: "ok"
    workers: int = 4
    max_attempts: int = 3
    lease: timedelta = timedelta(seconds=30)
    runs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = SystemClock()
        self.memory = MemoryIdempotencyStore(self.clock, timedelta(days=1))
        self.store = FaultyStore(self.memory)
        self.pool = ThreadPoolExecutor(self.workers)
        events = LastTraces()
        lock = Lock()

        def counted(job: Job, attempt: Attempt) -> object:
            with lock:
                self.runs.append(job.job_id)
            return self.operation(job, attempt)

        known = operations(counted)
        service = JobService(
            store=self.store,
            operations=known,
            events=events,
            clock=self.clock,
            new_id=counting_ids(),
            jitter=lambda: 0.0,
            max_attempts=self.max_attempts,
            margin=timedelta(seconds=5),
        )
        self.factory = JobFactory("test", known)
        self.runner = JobFileRunner(
            factory=self.factory,
            read=unwrap_line,
            process=service.process,
            submit=self.pool.submit,
            last_trace=events.last,
            workers=self.workers,
            clock=self.clock,
            jitter=lambda: 0.0,
            lease=self.lease,
            max_attempts=self.max_attempts,
        )

    def run(self, given: "list[Line] | Iterator[Line]") -> list[LineResult]:
        with self.pool:
            return [told for told in self.runner.run(given) if told]


def final(told: list[LineResult]) -> dict[int, Outcome | None]:
    outcomes = {each.line.number: each.outcome for each in told if each.is_final}
    assert len(outcomes) == len([each for each in told if each.is_final]), "each line ends once"
    return outcomes


def failing(*errors: BaseException) -> OperationFunction:
    """Raises these one after another, then succeeds."""
    left = list(errors)

    def run(job: Job, attempt: Attempt) -> object:
        if left:
            raise left.pop(0)
        return "ok"

    return run


def test_every_line_is_run_and_told_once() -> None:
    bench = Bench()
    told = bench.run(job_lines(*(str(number) for number in range(200))))
    assert len(told) == 200
    assert {type(outcome) for outcome in final(told).values()} == {Executed}
    assert sorted(bench.runs, key=int) == [str(number) for number in range(200)]


def test_a_job_that_is_twice_in_the_file_runs_once_and_never_waits_for_a_lease() -> None:
    bench = Bench()
    told = bench.run(job_lines("1", "1", "2", "1", "2"))
    assert sorted(bench.runs) == ["1", "2"]
    assert [type(final(told)[number]) for number in range(1, 6)] == [Executed, Skipped, Executed, Skipped, Skipped]
    assert not [each for each in told if isinstance(each.outcome, Deferred)]


def test_what_was_done_before_is_skipped() -> None:
    bench = Bench()
    claimed = bench.memory.claim(bench.factory.job({"job_id": "1"}), owner="before", lease=timedelta(seconds=1))
    assert isinstance(claimed, Acquired)
    bench.memory.complete(claimed.claim, Answer('"before"'))
    assert final(bench.run(job_lines("1"))) == {1: Skipped(Answer('"before"'))}
    assert bench.runs == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("not json", "not_json"),
        ("[]", "not_an_object"),
        ('{"job_id":5}', "invalid_payload"),
        ('{"job_id":"1","job_id":"2"}', "duplicate_member"),
        ('{"job_id":"1","operation":"other"}', "unknown_operation"),
    ],
)
def test_a_line_that_is_no_job_is_rejected_at_once_and_the_rest_goes_on(text: str, reason: str) -> None:
    outcomes = final(Bench().run(lines(text, '{"job_id":"ok"}')))
    assert isinstance(outcomes[1], Rejected)
    assert outcomes[1].reason == reason
    assert isinstance(outcomes[2], Executed)


def test_a_line_that_cannot_be_decoded_is_rejected_with_its_problem() -> None:
    outcomes = final(Bench().run([Line(1, b"\xff\n", None, "no UTF-8 at byte 0", 0)]))
    assert outcomes == {1: Rejected("unreadable_line", "no UTF-8 at byte 0")}


def test_a_transient_failure_is_tried_again_until_it_succeeds() -> None:
    told = Bench(failing(OSError(), OSError())).run(job_lines("1"))
    assert [(type(each.outcome), each.is_final) for each in told] == [
        (Failed, False),
        (Failed, False),
        (Executed, True),
    ]
    assert isinstance(told[0].error, OSError)


def test_a_job_that_keeps_failing_is_given_up_after_its_attempts() -> None:
    bench = Bench(failing(*[OSError()] * 10), max_attempts=3)
    told = bench.run(job_lines("1"))
    assert final(told) == {1: Failed(Failure.OPERATION_RAISED, "OSError")}
    assert bench.runs == ["1"] * 3


def test_attempts_of_earlier_runs_use_up_no_try() -> None:
    bench = Bench(failing(*[OSError()] * 10), max_attempts=3)
    job = bench.factory.job({"job_id": "1"})
    for number in range(3):
        claimed = bench.memory.claim(job, owner=str(number), lease=timedelta(seconds=30))
        assert isinstance(claimed, Acquired)
        bench.memory.release(claimed.claim, "KeyError")
    assert final(bench.run(job_lines("1")))[1] == Failed(Failure.OPERATION_RAISED, "OSError")
    assert bench.runs == ["1"] * 3


def test_a_permanent_error_is_rejected_at_once() -> None:
    bench = Bench(failing(PermanentError("card_expired", "card: expected later date")))
    outcome = final(bench.run(job_lines("1")))[1]
    assert outcome == Rejected("card_expired", "card: expected later date", "PermanentError", 1)
    assert bench.runs == ["1"]


def test_what_another_process_holds_is_waited_for_and_then_answered() -> None:
    bench = Bench()
    claimed = bench.memory.claim(bench.factory.job({"job_id": "1"}), owner="other", lease=timedelta(seconds=30))
    assert isinstance(claimed, Acquired)
    told: list[LineResult] = []
    for each in bench.runner.run(iter(job_lines("1", "2"))):
        if each is None:
            continue
        told.append(each)
        if isinstance(each.outcome, Deferred):
            bench.memory.complete(claimed.claim, Answer('"theirs"'))
    bench.pool.shutdown()
    assert final(told)[1] == Skipped(Answer('"theirs"'))
    assert len([each for each in told if isinstance(each.outcome, Deferred)]) == 1, "waiting is told once"


def test_what_a_killed_process_held_is_taken_over_when_its_lease_ends() -> None:
    bench = Bench()
    bench.memory.claim(bench.factory.job({"job_id": "1"}), owner="killed", lease=timedelta(milliseconds=100))
    assert isinstance(final(bench.run(job_lines("1")))[1], Executed)


def test_a_lost_lease_is_asked_for_again() -> None:
    def outlived(job: Job, attempt: Attempt) -> object:
        if attempt.number == 1:
            bench.memory.release(_claim_of(bench, job), "Stolen")
            other = bench.memory.claim(job, owner="other", lease=timedelta(milliseconds=20))
            assert isinstance(other, Acquired)
        return attempt.number

    bench = Bench(outlived)
    told = bench.run(job_lines("1"))
    assert told[0].outcome == Failed(Failure.LEASE_LOST)
    assert final(told) == {1: Executed(Answer("3"))}


def _claim_of(bench: Bench, job: Job) -> Claim:
    record = bench.memory.find(job.key)
    assert record is not None
    return Claim(job.key, record.owner or "", record.attempts)


class Odd(BaseException):
    """What no operation should raise."""


@pytest.mark.parametrize("error", [Odd(), CancelledError(), GeneratorExit(), KeyboardInterrupt()])
def test_what_is_no_exception_fails_its_own_line_and_is_tried_again(error: BaseException) -> None:
    told = Bench(failing(error)).run(job_lines("1", "2"))
    assert [type(outcome) for outcome in final(told).values()] == [Executed, Executed]
    between = [one.outcome for one in told if not one.is_final]
    assert between == [Failed(Failure.OPERATION_RAISED, type(error).__name__)]


@pytest.mark.parametrize("where", ["claim", "complete"])
def test_a_store_that_fails_stops_the_run_and_the_rest_is_told_as_not_run(where: str) -> None:
    bench = Bench(workers=1)
    plan: list[Fault] = [*["ok"] * 3, *["fails"] * 10_000]  # type: ignore[list-item]
    bench.store._faults = {where: plan}
    if where == "complete":
        bench.runner.lease = timedelta(milliseconds=50)
    told = bench.run(job_lines(*(str(number) for number in range(100))))
    assert bench.runner.stopped
    assert bench.runner.store_error is not None
    assert "told to fail" in bench.runner.store_error
    outcomes = final(told)
    assert [type(outcomes[number]) for number in (1, 2, 3, 4)] == [Executed, Executed, Executed, Failed]
    assert outcomes[5] is None


def test_a_file_that_breaks_off_is_told_and_what_came_is_run() -> None:
    def broken() -> Iterator[Line]:
        yield from job_lines("1", "2")
        raise UnreadableFileError("jobs.gz: cut")

    bench = Bench()
    assert len(final(bench.run(broken()))) == 2
    assert str(bench.runner.unreadable) == "jobs.gz: cut"


def test_stopping_finishes_what_runs_and_takes_no_more() -> None:
    started, go = Event(), Event()

    def slow(job: Job, attempt: Attempt) -> object:
        started.set()
        assert go.wait(10)
        return "ok"

    bench = Bench(slow, workers=2)
    told: list[LineResult] = []
    running = Thread(target=lambda: told.extend(bench.run(job_lines(*(str(number) for number in range(1000))))))
    running.start()
    assert started.wait(10)
    bench.runner.stop()
    go.set()
    running.join(10)
    outcomes = list(final(told).values())
    assert len([outcome for outcome in outcomes if isinstance(outcome, Executed)]) == len(bench.runs) <= 2
    assert len(outcomes) <= 2 + 2 * AHEAD_OF_WORKERS + 1, "no more than was read ahead"
    assert bench.runner.stopped


def test_lines_are_read_only_as_there_is_room() -> None:
    taken, go, full = [], Event(), Event()

    def endless() -> Iterator[Line]:
        for number in range(1, 10_000):
            taken.append(number)
            if len(taken) == 2 + 2 * AHEAD_OF_WORKERS:
                full.set()
            yield Line(number, b"", f'{{"job_id":"{number}"}}', None, 0)

    bench = Bench(lambda job, attempt: go.wait(10), workers=2)
    running = Thread(target=lambda: bench.run(endless()))
    running.start()
    assert full.wait(10)
    assert len(taken) <= 2 + 2 * AHEAD_OF_WORKERS + 1
    bench.runner.stop()
    go.set()
    running.join(10)


def test_too_many_waiting_jobs_keep_new_lines_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.files.runner.MOST_WAITING", 3)
    bench = Bench(workers=1)
    held = [bench.factory.job({"job_id": str(number)}) for number in range(3)]
    claims = [bench.memory.claim(job, owner="other", lease=timedelta(seconds=30)) for job in held]
    waiting = 0
    told: list[LineResult] = []
    for each in bench.runner.run(iter(job_lines("0", "1", "2", "new"))):
        if each is None:
            continue
        told.append(each)
        waiting += isinstance(each.outcome, Deferred)
        if waiting == 3:
            waiting = 0
            assert bench.runs == []
            for claimed in claims:
                assert isinstance(claimed, Acquired)
                bench.memory.complete(claimed.claim, Answer("1"))
    bench.pool.shutdown()
    assert len(final(told)) == 4


def test_waiting_for_another_uses_up_no_attempt() -> None:
    """A killed run left its claims: even at one attempt, its jobs are waited for and then run."""
    bench = Bench(max_attempts=1)
    bench.memory.claim(bench.factory.job({"job_id": "1"}), owner="killed", lease=timedelta(milliseconds=100))
    told = bench.run(job_lines("1"))
    assert isinstance(told[0].outcome, Deferred)
    assert isinstance(final(told)[1], Executed)


def test_a_held_job_is_asked_for_long_before_its_lease_ends() -> None:
    bench = Bench()
    claimed = bench.memory.claim(bench.factory.job({"job_id": "1"}), owner="other", lease=timedelta(hours=1))
    assert isinstance(claimed, Acquired)
    told: list[LineResult] = []
    running = Thread(target=lambda: told.extend(bench.run(job_lines("1"))), daemon=True)
    running.start()
    bench.memory.complete(claimed.claim, Answer("1"))
    running.join(10)
    assert isinstance(final(told)[1], Skipped)


def test_the_twin_of_a_job_that_is_tried_again_waits_for_it() -> None:
    bench = Bench(failing(OSError(), OSError()))
    told = bench.run(job_lines("1", "1"))
    assert [(each.line.number, type(each.outcome)) for each in told] == [
        (1, Failed),
        (1, Failed),
        (1, Executed),
        (2, Skipped),
    ]


def test_many_twins_of_a_waiting_job_do_not_keep_other_lines_out() -> None:
    bench = Bench()
    claimed = bench.memory.claim(bench.factory.job({"job_id": "held"}), owner="other", lease=timedelta(hours=1))
    assert isinstance(claimed, Acquired)
    others = [str(number) for number in range(20)]
    executed = 0
    for each in bench.runner.run(iter(job_lines(*["held"] * 200, *others))):
        executed += each is not None and isinstance(each.outcome, Executed)
        if executed == len(others):
            bench.memory.complete(claimed.claim, Answer("1"))
            executed = 0
    bench.pool.shutdown()
    assert sorted(bench.runs) == sorted(others)


def test_more_twins_than_may_wait_keep_new_lines_out_until_they_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.files.runner.MOST_WAITING", 5)
    told = Bench().run(job_lines(*["1"] * 300, "2"))
    assert len(final(told)) == 301


def test_many_lines_that_are_no_jobs_are_all_told() -> None:
    assert len(final(Bench(workers=1).run(lines(*["nonsense"] * 300)))) == 300


def test_large_jobs_that_wait_are_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.files.runner.MOST_WAITING_BYTES", 10_000)
    most = 0

    def fail_and_look(job: Job, attempt: Attempt) -> object:
        nonlocal most
        most = max(most, bench.runner._delays.size)
        raise OSError

    bench = Bench(fail_and_look, workers=2, max_attempts=3)
    told = bench.run([Line(n, b"x" * 2_000, f'{{"job_id":"{n}"}}', None, 0) for n in range(1, 60)])
    assert len(final(told)) == 59
    assert 0 < most <= 10_000 + 2 * 2_000
    assert bench.runner._delays.size == 0


@pytest.mark.parametrize(("failures", "seconds"), [(1, 0.5), (2, 1), (3, 2), (6, 16), (7, 30), (50, 30)])
def test_the_back_off_doubles_up_to_a_minute(failures: int, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the least jitter: half of it."""
    monkeypatch.undo()
    bench = Bench(max_attempts=1000)
    bench.clock = bench.runner.clock = FakeClock()  # type: ignore[assignment]
    (line,) = job_lines("1")
    failed = Failed(Failure.OPERATION_RAISED, "OSError")
    task = Task(line, bench.factory.job({"job_id": "1"}), failures=failures - 1, outcome=failed)
    list(bench.runner._settle(task))
    assert bench.runner._delayed[0][0] - bench.clock.now() == timedelta(seconds=seconds)
    bench.pool.shutdown()


def test_a_stop_waits_for_nothing_and_tells_everything_that_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.files.runner.FIRST_BACKOFF", timedelta(hours=1))
    bench = Bench(failing(*[OSError()] * 100), workers=1)
    told: list[LineResult] = []
    stops = 0

    def on_stop() -> None:
        nonlocal stops
        stops += 1

    bench.runner.on_stop = on_stop
    for each in bench.runner.run(iter(job_lines("1", "1", "2", "3"))):
        if each is None:
            bench.runner.stop()
            continue
        told.append(each)
    bench.pool.shutdown()
    assert final(told) == {1: None, 2: None, 3: None, 4: None}, "delayed, and the twin behind one"
    assert stops == 1


def test_when_nothing_happens_it_says_so_now_and_then() -> None:
    go = Event()
    bench = Bench(lambda job, attempt: go.wait(10))
    seen: list[LineResult | None] = []
    for each in bench.runner.run(iter(job_lines("1"))):
        seen.append(each)
        go.set()
    bench.pool.shutdown()
    assert seen[0] is None
    assert seen[-1] is not None


def test_whatever_ends_the_reader_ends_the_run() -> None:
    def broken() -> Iterator[Line]:
        yield from job_lines("1")
        raise RuntimeError("nobody foresaw it")

    bench = Bench()
    assert len(final(bench.run(broken()))) == 1
    assert str(bench.runner.unreadable).startswith("RuntimeError < ")
    assert "nobody" not in str(bench.runner.unreadable)


def test_a_file_for_whose_reader_there_is_no_thread_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    bench = Bench()
    monkeypatch.setattr(Thread, "start", refuse)
    assert bench.run(job_lines("1")) == []
    assert "can't start new thread" in str(bench.runner.unreadable)


def test_a_job_that_could_not_start_is_run_later() -> None:
    bench = Bench()
    process, refusals = bench.runner.process, [Failed(Failure.NOT_STARTED)]

    def refuses_once(job: Job, **options: object) -> Outcome:
        return refusals.pop() if refusals else process(job, **options)  # type: ignore[arg-type]

    bench.runner.process = refuses_once
    outcomes = final(bench.run(job_lines("1")))
    assert isinstance(outcomes[1], Executed)


def test_what_a_run_died_with_runs_alone_when_the_others_are_done() -> None:
    running: list[int] = []

    def run(job: Job, attempt: Attempt) -> object:
        running.append(bench.runner._running)
        if job.job_id == "0":
            raise OSError
        return None

    bench = Bench(run, max_attempts=1)
    died_with(bench.memory, bench.factory, "1", "2", "3")
    told = bench.run(job_lines("1", "2", "3", "1", "0", "4", "5", "6"))
    assert sorted(bench.runs[:4]) == ["0", "4", "5", "6"]
    assert sorted(bench.runs[4:]) == ["1", "2", "3"]
    assert running[4:] == [1, 1, 1]
    outcomes = final(told)
    assert [type(outcomes[number]) for number in range(1, 9)] == [*[Executed] * 3, Skipped, Failed, *[Executed] * 3]
    waits = [each for each in told if each.outcome == Failed(Failure.NOT_ALONE)]
    assert [(each.is_final, each.error) for each in waits] == [(False, None)] * 3


def test_what_waits_to_run_alone_is_told_without_the_error_of_another() -> None:
    bench = Bench(failing(OSError()), workers=2, max_attempts=1)
    died_with(bench.memory, bench.factory, "2")
    held = bench.pool
    bench.pool = ThreadPoolExecutor(1)  # one thread, which has just told of the failure
    bench.runner.submit = bench.pool.submit
    told = bench.run(job_lines("1", "2"))
    held.shutdown()
    assert [type(each.error) for each in told if each.line.number == 2] == [type(None)] * 2
    assert [type(each.error) for each in told if each.line.number == 1] == [OSError]


def test_what_is_read_while_one_runs_alone_waits_for_it() -> None:
    seen: list[bool] = []

    def run(job: Job, attempt: Attempt) -> object:
        if job.job_id == "1":
            until(lambda: bool(bench.runner._ready) or "2" in bench.runs)
            seen.append("2" in bench.runs)
        return None

    def slowly() -> Iterator[Line]:
        first, second = job_lines("1", "2")
        yield first
        until(lambda: bench.runs == ["1"])
        yield second

    bench = Bench(run)
    died_with(bench.memory, bench.factory, "1")
    bench.run(slowly())
    assert (seen, bench.runs) == ([False], ["1", "2"])


def test_so_many_of_them_that_nothing_else_has_room_run_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.files.runner.MOST_WAITING", 2)
    bench = Bench()
    names = [str(number) for number in range(9)]
    died_with(bench.memory, bench.factory, *names[:8])
    assert all(isinstance(outcome, Executed) for outcome in final(bench.run(job_lines(*names))).values())


def test_one_of_them_that_fails_is_tried_again_alone() -> None:
    bench = Bench(failing(OSError()))
    died_with(bench.memory, bench.factory, "1")
    outcomes = final(bench.run(job_lines("1", "2")))
    assert [type(outcomes[number]) for number in (1, 2)] == [Executed, Executed]


def test_a_run_of_one_worker_takes_them_in_their_turn() -> None:
    bench = Bench(workers=1)
    died_with(bench.memory, bench.factory, "1")
    bench.run(job_lines("1", "2"))
    assert bench.runs == ["1", "2"]


def test_a_stop_leaves_what_waits_to_run_alone() -> None:
    go = Event()
    bench = Bench(lambda job, attempt: go.wait(10), workers=2)
    died_with(bench.memory, bench.factory, "1")
    told: list[LineResult] = []
    for each in bench.runner.run(iter(job_lines("1", "2"))):
        told += [each] if each else []
        if each is not None and each.outcome == Failed(Failure.NOT_ALONE):
            bench.runner.stop()
            go.set()
    bench.pool.shutdown()
    assert (final(told)[1], bench.runs) == (None, ["2"])


@pytest.mark.parametrize("wrap", [lambda job: {"detail-type": "Job", "detail": job}, lambda job: job])
def test_a_line_is_read_as_the_worker_reads_a_body(wrap: Callable[[object], object]) -> None:
    bench = Bench()
    text = json.dumps(wrap({"job_id": "wrapped"}))
    lines = [Line(1, text.encode(), text, None, 0), Line(2, b"x", '{"Event":"s3:TestEvent"}', None, 0)]
    told = {one.line.number: one for one in bench.run(lines) if one.is_final}
    assert told[1].job_id == "wrapped"
    assert told[2].outcome == Rejected("not_an_object", "a service's test or confirmation message")
