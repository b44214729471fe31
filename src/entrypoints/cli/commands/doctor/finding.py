"""What `onejob doctor` finds: one thing that was looked at, whether it is well, and what would mend it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from entrypoints.cli.aws import explained


class Level(StrEnum):
    """`warn` is a risk that someone may have chosen; `fail` loses, delays or repeats work, or nothing runs at all."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """`subject` names the thing, `fix` the command or setting."""

    level: Level
    subject: str
    text: str
    fix: str = ""


def ok(subject: str, text: str) -> Finding:
    """As it should be."""
    return Finding(Level.OK, subject, text)


def warn(subject: str, text: str, fix: str) -> Finding:
    """A risk."""
    return Finding(Level.WARN, subject, text, fix)


def fail(subject: str, text: str, fix: str) -> Finding:
    """Wrong."""
    return Finding(Level.FAIL, subject, text, fix)


def judged(subject: str, is_well: bool, text: str, fix: str) -> Finding:
    """Well, or wrong."""
    return ok(subject, text) if is_well else fail(subject, text, fix)


@dataclass(frozen=True, slots=True)
class Asked:
    """What AWS answered, or the finding that it did not."""

    answer: Any = None
    trouble: Finding | None = None


def ask(subject: str, request: Callable[[], Any], *, level: Level = Level.FAIL) -> Asked:
    """One request to AWS; a refusal is a finding, never swallowed."""
    try:
        return Asked(request())
    except Exception as error:  # also an answer that lacks what it is asked for
        text, check, rest = explained(error, subject).partition(": check ")
        fix = f"check {rest}" if check else "let the caller have it, or look with another profile (AWS_PROFILE)"
        return Asked(trouble=Finding(level, subject, text, fix if check or "denied" in text else ""))
