"""The pages of docs keep up with the code: each setting, reason and metric is in a table, and each link leads on."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TELEMETRY = (ROOT / "src" / "adapters" / "telemetry.py").read_text()
WORKER_TELEMETRY = (ROOT / "src" / "adapters" / "worker_telemetry.py").read_text()
SOURCE = "\n".join(path.read_text() for path in (ROOT / "src").glob("**/*.py"))
REASONS = sorted(set(re.findall(r'(?:InvalidJobError|Rejected)\(\s*"(\w+)"', SOURCE)))
OF_WORK = set(re.findall(r'_count\("(\w+)"', WORKER_TELEMETRY))
PAGES = sorted(
    page for glob in ("*.md", "docs/**/*.md", "examples/**/*.md", "benchmarks/*.md") for page in ROOT.glob(glob)
)
LINK = re.compile(r"\]\(((?!https?:|mailto:)[^)\s]+)\)")


@pytest.mark.parametrize("name", sorted(set(re.findall(r'read\.\w+\("([A-Z_]+)"', SOURCE)) | {"IDEMPOTENCY_BACKEND"}))
def test_every_setting_is_in_the_table(name: str) -> None:
    assert f"| `{name}` |" in (DOCS / "settings.md").read_text()


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_of_rejection_is_in_the_table(reason: str) -> None:
    assert f"`{reason}`" in (DOCS / "messages.md").read_text()


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_of_rejection_has_a_test(reason: str) -> None:
    tests = [path for path in (ROOT / "tests").glob("**/*.py") if f'"{reason}' in path.read_text()]
    assert tests


@pytest.mark.parametrize("metric", sorted(set(re.findall(r'"((?:[A-Z][a-z]+){2,}|Unexpected)"', TELEMETRY)) | OF_WORK))
def test_every_metric_is_listed(metric: str) -> None:
    assert f"`{metric}`" in (DOCS / "observe.md").read_text()


def prose(page: Path) -> str:
    """Its text without blocks of code."""
    return re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.M | re.S)


@cache
def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them; a heading that comes twice has a number from the second time on."""
    found: list[str] = []
    for heading in re.findall(r"^#+ +(.*?) *$", prose(page), re.M):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        found.append(f"{slug}-{times}" if (times := found.count(slug)) else slug)
    return set(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_and_anchor_leads_somewhere(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.resolve()), link


def test_links_are_looked_at() -> None:
    assert "an-alarm-rings" in anchors(DOCS / "runbook.md")
    assert sum(len(LINK.findall(prose(page))) for page in PAGES) > 100


def test_every_page_can_be_found_from_the_readme() -> None:
    """By links, over any number of pages; the two old addresses only lead on."""
    seen: set[Path] = set()
    ahead = [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page.suffix == ".md" and page not in seen:
            seen.add(page)
            ahead += [
                (page.parent / link.partition("#")[0]).resolve() for link in LINK.findall(prose(page)) if link[0] != "#"
            ]
    assert {page.name for page in DOCS.glob("*.md")} - {page.name for page in seen} <= {"operate.md", "operations.md"}
