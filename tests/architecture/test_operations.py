"""The user's folder: it may import anything from elsewhere, and of onejob the names that its docstring lists."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
OURS = {"domain", "adapters", "entrypoints", "infra"}


def public() -> set[tuple[str, str]]:
    """Module and name of each, as the docstring of `operations` lists them."""
    text = ast.get_docstring(ast.parse((SOURCE / "operations" / "__init__.py").read_text())) or ""
    listed = re.findall(r"^- `([\w.]+)`: (.+)$", text, re.M)
    return {(module, name) for module, names in listed for name in re.findall(r"`(\w+)`", names)}


def imported(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "*") for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def test_operations_import_only_the_public_names_of_onejob() -> None:
    found = {one for path in (SOURCE / "operations").rglob("*.py") for one in imported(path)}
    assert {(module, name) for module, name in found if module.partition(".")[0] in OURS} <= public()
    assert len(public()) >= 6


def test_the_public_names_are_there() -> None:
    for module, name in public():
        path = (SOURCE / module.replace(".", "/")).with_suffix(".py")
        assert re.search(rf"^(class |def )?{name}\b", path.read_text(), re.M), (module, name)


def test_nothing_but_an_entrypoint_imports_operations_and_that_by_name() -> None:
    importers = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for module, _ in imported(path)
        if module.partition(".")[0] == "operations"
    }
    assert {path.partition("/")[0] for path in importers} <= {"operations"}
