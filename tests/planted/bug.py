"""How a bug and its near tests are stated."""

from dataclasses import dataclass

from tests.simulation.planted import BUGS, Bug


@dataclass(frozen=True, slots=True)
class Near:
    """A bug, and the pytest node ids of the tests that find it: all green without it, one red with it."""

    bug: Bug
    tests: tuple[str, ...]


def simulated(name: str) -> Bug:
    """The bug of that name in the simulator's table: it is found near too."""
    (bug,) = (one for one in BUGS if one.name == name)
    return bug
