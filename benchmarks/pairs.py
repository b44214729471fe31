"""What a comparison is made of: pairs taken in turn, their ratios, and how far these spread."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median, quantiles
from typing import Any


@dataclass(frozen=True, slots=True)
class Spread:
    """Of several measurements."""

    median: float
    lower_quartile: float
    upper_quartile: float
    least: float
    most: float
    number: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        lower, _, upper = quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
        return cls(median(values), lower, upper, min(values), max(values), len(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Ours against theirs, measurement by measurement. `goal` is the largest ratio that is good enough."""

    name: str
    unit: str
    ours: Sequence[float]
    theirs: Sequence[float]
    against: str
    goal: float | None = None
    note: str = ""

    @property
    def ratio(self) -> Spread:
        return Spread.of([mine / other for mine, other in zip(self.ours, self.theirs, strict=True)])

    @property
    def met(self) -> bool | None:
        return None if self.goal is None else self.ratio.median <= self.goal

    def to_json(self) -> dict[str, Any]:
        spreads = {
            "ratio": asdict(self.ratio),
            "onejob": asdict(Spread.of(self.ours)),
            self.against: asdict(Spread.of(self.theirs)),
        }
        return {"name": self.name, "unit": self.unit, "against": self.against, "goal": self.goal, "met": self.met} | (
            spreads | {"pairs": list(zip(self.ours, self.theirs, strict=True)), "note": self.note}
        )


@dataclass(frozen=True, slots=True)
class Section:
    """One measure: its comparisons, and what else was counted."""

    name: str
    comparisons: Sequence[Comparison] = ()
    counted: Mapping[str, Any] = field(default_factory=dict)


def in_turn(number: int, *sides: Callable[[], float]) -> list[list[float]]:
    """Measure all sides so many times, one after the other each time; the measurements of each side."""
    rounds = [[measure() for measure in sides] for _ in range(number)]
    return [list(side) for side in zip(*rounds, strict=True)]
