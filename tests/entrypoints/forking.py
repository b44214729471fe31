"""Operations that fork, each in its own way: `module:function` for the commands of the tests beside it.

A child that lives on says so in `children`, a job's effect goes to `effects`, and its answer is how the child ended.
"""

import multiprocessing
import os
import pty
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

from domain.attempt import Attempt
from domain.job import Job

warnings.simplefilter("ignore", DeprecationWarning)  # of forking where threads run


def say(where: str, text: str) -> None:
    with Path(where).open("a") as file:
        file.write(f"{text}\n")


def ended(child: int) -> int:
    """As `subprocess` has it: a signal's number is negative."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def live_on() -> None:
    """Until a signal comes."""
    signal.alarm(20)
    while True:
        signal.pause()


def effect(job: Job, attempt: Attempt, answer: object) -> object:
    say("effects", f"{job.job_id} {attempt.number}")
    return answer


def exits(job: Job, attempt: Attempt) -> object:
    sys.stdout.write("before the fork\n")
    if not (child := os.fork()):
        sys.stdout.write("of the child\n")
        sys.exit(7)
    return effect(job, attempt, ended(child))


def exits_with_a_text(job: Job, attempt: Attempt) -> object:
    if not (child := os.fork()):
        sys.exit("a last word")
    return effect(job, attempt, ended(child))


ONE_AT_A_TIME = threading.Lock()


def while_another_writes(job: Job, attempt: Attempt) -> object:
    """A thread holds the lock of standard output, since nobody reads what it writes, when the process is forked."""
    with ONE_AT_A_TIME:
        read, write = os.pipe()
        own = sys.stdout
        sys.stdout = open(write, "w")  # noqa: SIM115 - the child leaves it as it is
        writer = threading.Thread(target=sys.stdout.write, args=("x" * 1_000_000,))
        writer.start()
        left = 1_000_000 - len(os.read(read, 1))
        if not (child := os.fork()):
            signal.alarm(5)
            return None
        answer = ended(child)
        while left:
            left -= len(os.read(read, left))
        writer.join()
        sys.stdout.close()
        sys.stdout = own
        os.close(read)
        return effect(job, attempt, answer)


def returns(job: Job, attempt: Attempt) -> object:
    if not (child := os.fork()):
        return "of the child"
    return effect(job, attempt, ended(child))


def raises(job: Job, attempt: Attempt) -> object:
    if not (child := os.fork()):
        raise LookupError("in the child")
    return effect(job, attempt, ended(child))


def grandchild(job: Job, attempt: Attempt) -> object:
    if not (child := os.fork()):
        if not (other := os.fork()):
            return "of the grandchild"
        sys.exit(10 + ended(other))
    return effect(job, attempt, ended(child))


def by_pty(job: Job, attempt: Attempt) -> object:
    child, terminal = pty.fork()
    if not child:
        sys.exit(5)
    answer = ended(child)
    os.close(terminal)
    return effect(job, attempt, answer)


def signalled(number: signal.Signals) -> Callable[[Job, Attempt], object]:
    """Once, as soon as the child lives; a child that ignores it ends by itself, much later."""

    def run(job: Job, attempt: Attempt) -> object:
        read, write = os.pipe()
        if not (child := os.fork()):
            os.write(write, b"x")
            live_on()
        os.read(read, 1)
        os.kill(child, number)
        return effect(job, attempt, ended(child))

    return run


terminated = signalled(signal.SIGTERM)
interrupted = signalled(signal.SIGINT)
hung_up = signalled(signal.SIGHUP)


def at_once(job: Job, attempt: Attempt) -> object:
    """The signal may come before the child has done anything at all."""
    answers = set()
    for _ in range(20):
        if not (child := os.fork()):
            live_on()
        os.kill(child, signal.SIGTERM)
        answers.add(ended(child))
    return effect(job, attempt, sorted(answers))


def _ends() -> None:
    print("of multiprocessing", flush=True)


def terminated_process(job: Job, attempt: Attempt) -> object:
    process = multiprocessing.get_context("fork").Process(target=live_on)
    process.start()
    process.terminate()
    process.join()
    return effect(job, attempt, process.exitcode)


def ended_process(job: Job, attempt: Attempt) -> object:
    process = multiprocessing.get_context("fork").Process(target=_ends)
    process.start()
    process.join()
    return effect(job, attempt, process.exitcode)


def named(job: Job, attempt: Attempt) -> object:
    """The one of these that the payload names."""
    run: Callable[[Job, Attempt], object] = globals()[str(job.payload["named"])]
    return run(job, attempt)
