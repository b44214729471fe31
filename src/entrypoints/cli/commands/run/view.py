"""How a run is shown: a line for each job that did not simply execute, progress, and a summary.

On a terminal a bar with rate and time left; elsewhere plain lines, and progress on standard error; with `--json` one
object a line. Identifiers are shown as text, never as markup or control characters.
"""

import json
import sys
import time
from collections import Counter
from traceback import extract_tb
from typing import Any, Final, Protocol

from rich.console import Console, Group
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from adapters.files.runner import LineResult
from domain.errors import text_of
from domain.outcome import Deferred, Executed, Failed, Failure, Rejected, Skipped
from entrypoints.cli.output import printable, say, spinner, write

EVERY_SECONDS: Final = 5.0
REFRESH_SECONDS: Final = 0.1
MOST_REASONS: Final = 30
"""Rows of the summary: a code that differs from job to job must not fill it."""


class Tally:
    """What became of the lines so far."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self._began = time.monotonic()

    def add(self, told: LineResult) -> None:
        """Count a line that is done with."""
        if told.is_final:
            self.counts[word(told)] += 1
            if isinstance(told.outcome, Rejected):
                known = told.outcome.reason in self.reasons or len(self.reasons) < MOST_REASONS
                self.reasons[told.outcome.reason if known else "other reasons"] += 1

    @property
    def lines(self) -> int:
        return self.counts.total()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def rate(self) -> float:
        return self.lines / max(self.seconds, 1e-9)

    def as_object(self) -> dict[str, Any]:
        """For scripts."""
        names = ("executed", "skipped", "failed", "rejected", "not_run")
        return {
            **{name: self.counts[name] for name in names},
            "rejected_by_reason": dict(self.reasons),
            "seconds": round(self.seconds, 3),
        }


class View(Protocol):
    """What a run is shown on."""

    def told(self, told: LineResult) -> None:
        """Something happened to a line."""
        ...

    def idle(self) -> None:
        """Nothing has happened for a while: show what is held back."""
        ...

    def note(self, text: str) -> None:
        """Something happened to the run."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was; also after an error, and again."""
        ...

    def end(self, tally: Tally) -> None:
        """The run is over."""
        ...


def word(told: LineResult) -> str:
    """What became of it, in one word."""
    match told.outcome:
        case Executed():
            return "executed"
        case Skipped():
            return "skipped"
        case Rejected():
            return "rejected"
        case None:
            return "not_run"
        case Deferred() | Failed():
            return "failed" if told.is_final else "again"


def explained(told: LineResult, *, error_messages: bool) -> str:
    """What became of it, and why."""
    outcome = told.outcome
    match outcome:
        case Executed(answer):
            return f"executed, its answer omitted: {answer.omitted}" if answer.omitted else "executed"
        case Skipped():
            return "skipped: done before"
        case Deferred(until):
            return f"waiting: another worker holds it until {until.astimezone():%H:%M:%S}"
        case Rejected(reason, detail, error_type):
            return ": ".join(filter(None, ("rejected", reason, detail, error_type)))
        case Failed(Failure.NOT_ALONE):
            return "waiting: an earlier run died with this job; it runs when the others are done, alone"
        case Failed(reason, error_type):
            ending = "" if told.is_final else ", trying again"
            return f"failed: {error_type or reason}{_place(told, error_messages=error_messages)}{ending}"
        case None:
            return "not run"


def _place(told: LineResult, *, error_messages: bool) -> str:
    if told.error is None:
        return ""
    frames = extract_tb(told.error.__traceback__, limit=-1)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{place}: {text_of(told.error)}" if error_messages else place


def line_of(told: LineResult, *, error_messages: bool) -> str:
    """One line for people."""
    job = "" if told.job_id is None else f"  {told.job_id}"
    return printable(f"line {told.line.number}{job}  {explained(told, error_messages=error_messages)}")


def is_worth_a_line(told: LineResult) -> bool:
    """Whatever did not simply execute."""
    return not isinstance(told.outcome, Executed) or told.outcome.answer.omitted is not None


class JsonView:
    """One object for each such line, and one for the summary. What operations print goes to standard error."""

    def __init__(self, *, error_messages: bool) -> None:
        self._error_messages = error_messages
        self._output, sys.stdout = sys.stdout, sys.stderr

    def told(self, told: LineResult) -> None:
        if is_worth_a_line(told):
            why = explained(told, error_messages=self._error_messages)
            self._print(line=told.line.number, job_id=told.job_id, outcome=word(told), explanation=why)

    def idle(self) -> None:
        pass

    def note(self, text: str) -> None:
        say(text)

    def end(self, tally: Tally) -> None:
        self._print(summary=tally.as_object())

    def close(self) -> None:
        sys.stdout = self._output

    def _print(self, **values: Any) -> None:
        write(self._output, f"{json.dumps(values)}\n")


class PlainView:
    """For pipes and logs."""

    def __init__(self, tally: Tally, *, error_messages: bool) -> None:
        self._tally = tally
        self._error_messages = error_messages
        self._next = EVERY_SECONDS

    def told(self, told: LineResult) -> None:
        if is_worth_a_line(told):
            write(sys.stdout, f"{line_of(told, error_messages=self._error_messages)}\n")
        self.idle()

    def idle(self) -> None:
        if self._tally.seconds >= self._next:
            self._next += EVERY_SECONDS
            self.note(f"{self._tally.lines:,} lines, {self._tally.rate:,.0f}/s")

    def note(self, text: str) -> None:
        say(text)

    def end(self, tally: Tally) -> None:
        console = Console()
        with console.capture() as captured:
            console.print(summary(tally))
        write(sys.stdout, captured.get())

    def close(self) -> None:
        pass


class BarView:
    """For a terminal. Lines are printed in bunches, since each redraws the bar."""

    def __init__(self, tally: Tally, size: int | None, *, error_messages: bool) -> None:
        self._tally = tally
        self._error_messages = error_messages
        self._bunch: list[Text] = []
        self._drawn = 0.0
        self._position = 0
        self._progress = Progress(
            SpinnerColumn(spinner(sys.stdout)),
            BarColumn(),
            TextColumn("{task.fields[lines]:,} lines"),
            TextColumn("{task.fields[rate]:,.0f}/s"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            transient=True,
        )
        self._bar = self._progress.add_task("", total=size, lines=0, rate=0.0)
        self._progress.start()

    def told(self, told: LineResult) -> None:
        self._position = max(self._position, told.line.position)
        if is_worth_a_line(told):
            text = line_of(told, error_messages=self._error_messages)
            self._bunch.append(Text(text, {"failed": "red", "rejected": "yellow"}.get(word(told), "dim")))
        if self._tally.seconds - self._drawn >= REFRESH_SECONDS:
            self.idle()

    def idle(self) -> None:
        self._drawn = self._tally.seconds
        if self._bunch:
            self._progress.console.print(Group(*self._bunch))
            self._bunch = []
        self._progress.update(self._bar, completed=self._position, lines=self._tally.lines, rate=self._tally.rate)

    def note(self, text: str) -> None:
        self._progress.console.print(Text(printable(text), "bold"))

    def end(self, tally: Tally) -> None:
        self.idle()
        self._progress.stop()
        self._progress.console.print(summary(tally))

    def close(self) -> None:
        self._progress.stop()


def summary(tally: Tally) -> Table:
    """The end of the story."""
    table = Table(show_header=False)
    table.add_column()
    table.add_column(justify="right")
    styles = {"executed": "green", "skipped": "green", "failed": "red", "rejected": "yellow", "not_run": "yellow"}
    for name, style in styles.items():
        if tally.counts[name] or name in ("executed", "skipped", "failed"):
            table.add_row(Text(name.replace("_", " "), style if tally.counts[name] else ""), f"{tally.counts[name]:,}")
        if name == "rejected":
            for reason, number in sorted(tally.reasons.items()):
                table.add_row(Text(f"  {printable(reason)}"), f"{number:,}")
    table.add_row("duration", f"{tally.seconds:.1f} s")
    table.add_row("rate", f"{tally.rate:,.0f}/s")
    return table
