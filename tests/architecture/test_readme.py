"""The README is short, and starts with the two commands that CI runs. What it links to: `test_pages.py`."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
MOST_LINES = 130


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= MOST_LINES


def test_the_two_commands_are_what_ci_runs() -> None:
    assert "uv run onejob demo" in README
    assert "uv run pytest" in README
    assert "onejob demo" in (ROOT / ".ci" / "run").read_text()
