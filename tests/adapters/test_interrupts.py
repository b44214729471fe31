"""What a signal raised is told from what an operation raises by itself."""

import asyncio
import signal
from collections.abc import Iterator
from threading import Thread

import pytest

from adapters.forks import handling
from adapters.interrupts import is_of_a_signal, marked_interrupts


@pytest.fixture(autouse=True)
def own_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def test_ctrl_c_is_of_a_signal() -> None:
    with pytest.raises(KeyboardInterrupt) as raised, marked_interrupts():
        ctrl_c()
    assert is_of_a_signal(raised.value)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_what_is_raised_where_no_one_pressed_it_is_not(kind: type[BaseException]) -> None:
    with pytest.raises(kind) as raised, marked_interrupts():
        raise kind
    assert not is_of_a_signal(raised.value)


def test_what_is_raised_instead_of_an_interrupt_is_of_the_signal_too() -> None:
    def cancels() -> None:
        try:
            ctrl_c()
        except KeyboardInterrupt:
            raise asyncio.CancelledError from None

    with pytest.raises(asyncio.CancelledError) as raised, marked_interrupts():
        cancels()
    assert is_of_a_signal(raised.value)


def test_a_group_with_an_interrupt_in_it_is_of_the_signal_too() -> None:
    def gathers() -> None:
        try:
            ctrl_c()
        except KeyboardInterrupt as error:
            group = BaseExceptionGroup("", [error])
        raise group

    with pytest.raises(BaseExceptionGroup) as raised, marked_interrupts():
        gathers()
    assert is_of_a_signal(raised.value)


def test_an_exception_raised_instead_is_a_failure_of_the_operation() -> None:
    def fails() -> None:
        try:
            ctrl_c()
        except KeyboardInterrupt as error:
            raise LookupError from error

    with pytest.raises(LookupError) as raised, marked_interrupts():
        fails()
    assert not is_of_a_signal(raised.value)


def test_ctrl_c_inside_an_event_loop_is_of_a_signal() -> None:
    async def presses() -> None:
        ctrl_c()

    with pytest.raises(KeyboardInterrupt) as raised, marked_interrupts():
        asyncio.run(presses())
    assert is_of_a_signal(raised.value)


def test_what_a_handler_of_ours_raises_is_of_a_signal() -> None:
    def stops(_number: int, _frame: object) -> None:
        raise SystemExit(143)

    with pytest.raises(SystemExit) as raised, handling([signal.SIGTERM], stops):
        signal.raise_signal(signal.SIGTERM)
    assert is_of_a_signal(raised.value)
    assert raised.value.code == 143


def test_a_chain_without_end_is_looked_at_for_a_while() -> None:
    first, second = KeyboardInterrupt(), KeyboardInterrupt()
    first.__cause__, second.__cause__ = second, first
    assert not is_of_a_signal(first)


def test_another_handler_and_another_thread_are_left_alone() -> None:
    seen: list[object] = []
    signal.signal(signal.SIGINT, lambda *_: seen.append("pressed"))
    with marked_interrupts():
        ctrl_c()
    assert seen == ["pressed"]
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def elsewhere() -> None:
        with marked_interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen[1:] == [signal.default_int_handler]


def test_a_handler_that_is_installed_meanwhile_stays() -> None:
    def mine(*_: object) -> None: ...

    with marked_interrupts():
        signal.signal(signal.SIGINT, mine)
    assert signal.getsignal(signal.SIGINT) is mine
