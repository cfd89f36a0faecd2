from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.command import ROOT, UV

LOCKS = {name: (ROOT / name).read_text() for name in ("requirements.lock", "requirements-dev.lock")}
PINNED = {
    name: dict(re.findall(r"^([a-z0-9_.-]+)==([^ ;]+)", lock, re.MULTILINE))
    for name, lock in LOCKS.items()
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OF_UV = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
TORCH = Requirement((ROOT / "torch.txt").read_text().splitlines()[-1])
FOR_FEW = {
    "aiohttp", "boto3", "mlflow-skinny", "moto", "mypy", "opencensus", "pytest", "ruff",
    "tensorboard", "torch", "triton", "uv",
}  # fmt: skip
"""Packages of tests, checks and rare options, and torch, which is installed apart."""
UNPICKLING = {
    "pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "read_pickle", "unsafe_load",
    "full_load", "system", "popen", "builtin eval", "builtin exec",
}  # fmt: skip
"""Functions and modules that may execute code from the data that they read."""
ALLOWED = {
    # The user named this file of layers in their own command.
    "trainables/output_layers/custom.py": {"builtin exec"},
    # Tune wrote this error in this process, to a folder with mode 700.
    "orchestrator/schedule/tune.py": {"pickle"},
}
ROOMS = ("orchestrator", "trainables", "search_spaces", "gpu_proof")


def needs(*extras: str) -> list[Requirement]:
    """Return the requirements of the package with some extras, without torch and itself."""
    groups = (PROJECT["dependencies"], *(PROJECT["optional-dependencies"][name] for name in extras))
    found = [Requirement(line) for group in groups for line in group]
    return [need for need in found if need.name not in (PROJECT["name"], "torch")]


@pytest.mark.parametrize("name", LOCKS)
def test_packages_are_pinned_with_hashes(name: str) -> None:
    entries = re.split(r"\n(?=\S)", LOCKS[name].strip())
    assert len(entries) == len(PINNED[name]) > 60 and "://" not in LOCKS[name]
    pinned = re.compile(r"\S+==\S+( ; [^\n]*?)?( \\\n    --hash=sha256:[0-9a-f]{64})+")
    assert [entry for entry in entries if not pinned.fullmatch(entry)] == []


@pytest.mark.parametrize(
    ("name", "extras"),
    [("requirements.lock", ["view"]), ("requirements-dev.lock", PROJECT["optional-dependencies"])],
)
def test_lock_holds_every_requirement(name: str, extras: list[str]) -> None:
    pinned = PINNED[name]
    assert [
        need
        for need in needs(*extras)
        if not need.specifier.contains(pinned[canonicalize_name(need.name)])
    ] == []


def test_make_sweep_installs_few_packages() -> None:
    few, all_packages = PINNED["requirements.lock"], PINNED["requirements-dev.lock"]
    assert few.items() <= all_packages.items() and len(few) < len(all_packages) / 2
    assert few.keys() & FOR_FEW == set() and FOR_FEW - all_packages.keys() == {"torch"}


def test_locks_of_pip_and_uv_agree() -> None:
    files = {
        package["name"]: {
            file["hash"].removeprefix("sha256:")
            for file in (*filter(None, [package.get("sdist")]), *package.get("wheels", ()))
        }
        for package in OF_UV
    }
    versions = {package["name"]: package["version"] for package in OF_UV}
    assert TORCH.specifier.contains(versions["torch"])
    for name, lock in LOCKS.items():
        assert PINNED[name].items() <= versions.items()
        for entry in re.split(r"\n(?=\S)", lock.strip()):
            hashes = set(re.findall(r"sha256:([0-9a-f]{64})", entry))
            assert hashes == files[entry.partition("==")[0]]


def test_uv_lock_names_the_public_index() -> None:
    """A mirror's address in it would be of no use to others."""
    indices = {package["source"].get("registry", "") for package in OF_UV}
    hosts = {urlsplit(index).hostname for index in indices} - {None}
    assert len(hosts) == 1 and hosts.pop().endswith("pypi.org")


@pytest.mark.skipif(not UV.exists(), reason="uv is not installed")
def test_uv_lock_fits_the_project(tmp_path: Path) -> None:
    words = ("lock", "--check", "--offline", "--cache-dir", str(tmp_path))
    answer = subprocess.run([UV, *words], cwd=ROOT, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr


def calls() -> Iterator[tuple[str, ast.AST]]:
    for path in (
        *(path for room in ROOMS for path in (ROOT / room).rglob("*.py")),
        ROOT / "sweep.py",
    ):
        for node in ast.walk(ast.parse(path.read_text())):
            yield str(path.relative_to(ROOT)), node


def names_used(node: ast.AST) -> set[str]:
    match node:
        case ast.Import():
            return {alias.name.partition(".")[0] for alias in node.names}
        case ast.ImportFrom(module=module):
            return {str(module).partition(".")[0], *(alias.name for alias in node.names)}
        case ast.Call(func=ast.Attribute(attr=name)):
            return {name}
        case ast.Call(func=ast.Name(id=name)):
            return {name, f"builtin {name}"}
    return set()


def test_foreign_files_are_never_unpickled() -> None:
    used = [(name, names_used(node) & UNPICKLING) for name, node in calls()]
    assert len({name for name, _ in used}) > 150
    assert [(name, bad) for name, bad in used if bad - ALLOWED.get(name, set())] == []


def test_arrays_are_read_without_pickle() -> None:
    """Each call must forbid pickles, because numpy's and torch's defaults differ by version."""
    for name, node in calls():
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="load")):
                raise AssertionError(f"{name} reads a pickle")
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="np"), attr="load")
                | ast.Attribute(attr="read_array"),
                keywords=keywords,
            ):
                arguments = {word.arg: ast.unparse(word.value) for word in keywords}
                assert arguments.get("allow_pickle") == "False", name


def test_every_promise_names_a_test() -> None:
    names = re.findall(r"`([a-z_/]+/test_\w+\.py)`", (ROOT / "SECURITY.md").read_text())
    assert len(names) > 10
    assert [name for name in names if not (ROOT / "tests" / name).is_file()] == []
