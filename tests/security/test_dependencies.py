from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text()
PINNED = dict(re.findall(r"^([a-z0-9_.-]+)==([^ ;]+)", LOCK, re.MULTILINE))
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


def test_packages_are_pinned_with_hashes() -> None:
    entries = re.split(r"\n(?=\S)", LOCK.strip())
    assert len(entries) == len(PINNED) > 100 and "://" not in LOCK
    pinned = re.compile(r"\S+==\S+( ; [^\n]*?)?( \\\n    --hash=sha256:[0-9a-f]{64})+")
    assert [entry for entry in entries if not pinned.fullmatch(entry)] == []


def test_lock_holds_every_requirement() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = (project["dependencies"], *project["optional-dependencies"].values())
    needs = [Requirement(line) for group in groups for line in group]
    specifiers = {str(canonicalize_name(need.name)): need.specifier for need in needs}
    torch = Requirement((ROOT / "torch.txt").read_text().splitlines()[-1])
    pinned = PINNED | {"torch": next(iter(torch.specifier)).version}
    assert "torch" not in PINNED and specifiers.pop(project["name"], None) is not None
    assert [
        name for name, allowed in specifiers.items() if not allowed.contains(pinned[name])
    ] == []


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
