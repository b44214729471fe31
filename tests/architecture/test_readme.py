"""The README keeps up with the code: every setting, reason and event is in it, and what it links to exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
TELEMETRY = (ROOT / "src" / "adapters" / "telemetry.py").read_text()
SOURCE = "\n".join(path.read_text() for path in (ROOT / "src").glob("**/*.py"))


@pytest.mark.parametrize("name", sorted(set(re.findall(r'read\.\w+\("([A-Z_]+)"', SOURCE)) | {"IDEMPOTENCY_BACKEND"}))
def test_every_setting_is_in_the_table(name: str) -> None:
    assert f"| `{name}` |" in README


@pytest.mark.parametrize("reason", sorted(set(re.findall(r'(?:InvalidJobError|Rejected)\(\s*"(\w+)"', SOURCE))))
def test_every_reason_of_rejection_is_in_the_table(reason: str) -> None:
    assert f"`{reason}`" in README


@pytest.mark.parametrize("reason", sorted(set(re.findall(r'(?:InvalidJobError|Rejected)\(\s*"(\w+)"', SOURCE))))
def test_every_reason_of_rejection_has_a_test(reason: str) -> None:
    tests = [path for path in (ROOT / "tests").glob("**/*.py") if f'"{reason}' in path.read_text()]
    assert tests


@pytest.mark.parametrize("metric", sorted(set(re.findall(r'"((?:[A-Z][a-z]+){2,}|Unexpected)"', TELEMETRY))))
def test_every_metric_is_listed(metric: str) -> None:
    assert f"`{metric}`" in README


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(((?!https?:)[^)#]+)\)", README))))
def test_every_link_leads_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


def test_the_two_commands_are_what_ci_runs() -> None:
    assert "uv run onejob demo" in README
    assert "uv run pytest" in README
    assert "onejob demo" in (ROOT / ".ci" / "run").read_text()
