"""A failing plan made smaller, as long as the same rule breaks."""

import re

from tests.simulation.backends import MakeBackend
from tests.simulation.plan import Plan
from tests.simulation.run import Result, simulate


def shrink(plan: Plan, make_backend: MakeBackend) -> Result:
    """The smallest failing run found by leaving things out one after another."""
    best = simulate(plan, make_backend)
    assert best.violation is not None, "only what fails can be shrunk"
    rule = _rule(best)
    improved = True
    while improved:
        improved = False
        for smaller in best.plan.simpler():
            tried = simulate(smaller, make_backend)
            if tried.violation is not None and _rule(tried) == rule:
                best, improved = tried, True
                break
    return best


def _rule(result: Result) -> str:
    """The violation without its names and numbers."""
    return re.sub(r"[0-9]+", "", result.violation or "")[:30]
