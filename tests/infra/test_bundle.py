"""The bundle: run-time parts only, for the function's platform, the same bytes for the same input."""

import importlib.util
import json
import re
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from infra.bundle import PROJECT, Bundle, BundleError, _compile, build
from infra.worker_props import Architecture
from tests.support.project import copied_project


def content(bundle: Bundle) -> dict[str, bytes]:
    return {path.relative_to(bundle.folder).as_posix(): path.read_bytes() for path in bundle.files}


@pytest.fixture(scope="module")
def arm() -> Bundle:
    return build(Architecture.ARM64)


@pytest.fixture(scope="module")
def x86() -> Bundle:
    return build(Architecture.X86_64)


def test_it_holds_the_run_time_and_nothing_else(arm: Bundle) -> None:
    names = {path.name.split(".")[0] for path in arm.folder.iterdir() if not path.name.endswith(".dist-info")}
    assert {"adapters", "aws_lambda_powertools", "dependency_injector", "domain", "entrypoints"} <= names
    packages = {path.name.partition("-")[0].replace("_", "-").lower() for path in arm.folder.glob("*.dist-info")}
    exported = subprocess.run(
        ["uv", "export", "--frozen", "--no-dev", "--no-emit-project", "--no-hashes", "--no-annotate", "--no-header"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    locked = set(re.findall(r"^([a-z0-9-]+)==", exported, re.M))
    assert packages == locked - {"boto3", "botocore", "s3transfer", "urllib3", "python-dateutil", "six"}
    assert not (arm.folder / "entrypoints" / "cli").exists()
    assert not (arm.folder / "entrypoints" / "emulator").exists()


def test_no_tests_no_c_sources_no_bytecode_of_another_python(arm: Bundle) -> None:
    for path in arm.files:
        assert path.suffix not in {".c", ".cpp", ".h", ".pyx", ".pxd"}, path
        assert not {"test", "tests"} & set(path.relative_to(arm.folder).parts), path
        if path.suffix == ".pyc":
            header = path.read_bytes()[:8]
            assert header[:4] == importlib.util.MAGIC_NUMBER, path
            assert header[4:] == b"\1\0\0\0", "bytecode is taken as it is, whatever the source's time"


@pytest.mark.parametrize("name", ["json", "py_compile", "compileall", "concurrent", "struct"])
def test_nothing_is_imported_from_the_folder_that_one_stands_in(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{name}.py").write_text("open('imported', 'w'); raise SystemExit(9)")
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "module.py").write_text("x = 1")
    monkeypatch.chdir(tmp_path)
    assert _compile(tmp_path / "made", tmp_path / "made") == ""
    assert list((tmp_path / "made").rglob("*.pyc"))
    assert not Path("imported").exists()


@pytest.mark.parametrize("name", ["json", "runpy", "jsii", "aws_cdk"])
def test_the_app_imports_no_library_from_the_folder_that_it_stands_in(name: str, tmp_path: Path) -> None:
    project = copied_project(tmp_path / "project")
    (project / f"{name}.py").write_text("open('imported', 'w'); raise SystemExit(9)")
    command = json.loads((project / "cdk.json").read_text())["app"].split()
    (project / "infra" / "app.py").write_text(f"import {name}, sys, infra; print(infra.__path__, sys.path[0])")
    done = subprocess.run([sys.executable, *command[1:]], cwd=project, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert str(project / "infra") in done.stdout
    assert not (project / "imported").exists()


def test_every_module_is_compiled_under_the_name_it_has_in_lambda(arm: Bundle) -> None:
    sources = [path for path in arm.files if path.suffix == ".py"]
    for path in sources:
        compiled = path.parent / "__pycache__" / f"{path.stem}.cpython-313.pyc"
        assert compiled.exists(), path
    ours = arm.folder / "entrypoints" / "__pycache__" / "sqs_worker.cpython-313.pyc"
    assert b"/var/task/entrypoints/sqs_worker.py" in ours.read_bytes()


@pytest.mark.parametrize(("architecture", "machine"), [(Architecture.ARM64, 0xB7), (Architecture.X86_64, 0x3E)])
def test_libraries_are_of_the_function_s_processor_and_python(architecture: Architecture, machine: int) -> None:
    libraries = [path for path in build(architecture).files if ".so" in path.suffixes]
    assert libraries
    for path in libraries:
        elf = path.read_bytes()[:20]
        assert elf[:4] == b"\x7fELF"
        assert int.from_bytes(elf[18:20], "little") == machine
        assert {"abi3", "cpython-313"} & set(re.split(r"[.]|-(?=x86_64|aarch64)", path.name)), path.name


def test_it_is_small(arm: Bundle, x86: Bundle) -> None:
    for bundle in (arm, x86):
        assert len(bundle.zipped()) < 6_000_000
        assert re.fullmatch(
            rf"bundle for {bundle.architecture}: \d+ files, \d+\.\d MB, \d\.\d MB zipped", bundle.size()
        )


def test_everyone_may_read_it_whatever_the_umask(tmp_path: Path) -> None:
    project = copied_project(tmp_path)
    command = (
        f"import os; os.umask(0o077); from infra.bundle import *; build(Architecture('arm64'), Path({str(project)!r}))"
    )
    subprocess.run([sys.executable, "-c", command], check=True, cwd=PROJECT)
    (folder,) = (project / "build").glob("bundle-*")
    assert folder.stat().st_mode & 0o777 == 0o755
    assert {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()} == {0o644}


def test_the_same_input_gives_the_same_bytes(tmp_path: Path, arm: Bundle) -> None:
    again = build(Architecture.ARM64, copied_project(tmp_path))
    assert again.folder.name == arm.folder.name
    assert content(again) == content(arm)
    assert again.zipped() == arm.zipped()


def test_it_is_built_once(tmp_path: Path) -> None:
    project = copied_project(tmp_path)
    first = build(Architecture.ARM64, project)
    times = {path: path.stat().st_mtime_ns for path in first.files}
    again = build(Architecture.ARM64, project)
    assert {path: path.stat().st_mtime_ns for path in again.files} == times
    assert [path.name for path in (project / "build").iterdir()] == [first.folder.name]


def test_another_architecture_source_or_dependency_is_another_bundle(tmp_path: Path, arm: Bundle, x86: Bundle) -> None:
    assert content(arm) != content(x86)
    project = copied_project(tmp_path)
    edited = project / "src" / "operations" / "example.py"
    edited.write_text(edited.read_text() + "\n# changed\n")
    changed = build(Architecture.ARM64, project)
    assert changed.folder.name != arm.folder.name
    assert content(changed).keys() == content(arm).keys()
    assert content(changed)["operations/example.py"].endswith(b"# changed\n")

    settings = project / "pyproject.toml"
    settings.write_text(settings.read_text().replace('    "boto3>=', '    "typing-inspection",\n    "boto3>=', 1))
    subprocess.run(["uv", "lock", "--quiet"], cwd=project, check=True)
    with_more = build(Architecture.ARM64, project)
    assert (with_more.folder / "typing_inspection").is_dir()
    assert with_more.folder.name != changed.folder.name


def test_the_zip_holds_the_same_files(arm: Bundle) -> None:
    with zipfile.ZipFile(BytesIO(arm.zipped())) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == content(arm)


def test_what_cannot_be_built_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    project = copied_project(tmp_path)
    (project / "src" / "operations" / "example.py").write_text("def broken(:\n")
    with pytest.raises(BundleError, match=r"(?s)cannot be compiled.*example\.py"):
        build(Architecture.ARM64, project)
    assert list((project / "build").iterdir()) == []
    (project / "uv.lock").unlink()
    with pytest.raises(BundleError, match="uv export"):
        build(Architecture.ARM64, project)


def test_another_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 14, 0, "final", 0))
    with pytest.raises(BundleError, match=r"uv run --python 3\.13"):
        build(Architecture.ARM64)


def test_uv_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("UV", raising=False)
    with pytest.raises(BundleError, match="uv is not on the PATH"):
        build(Architecture.ARM64)
