"""What is installed is what was looked at: exact versions, each with the hashes of its files, and
nothing unpickles."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text()
PINNED = dict(re.findall(r"^([a-z0-9_.-]+)==([^ ;]+)", LOCK, re.MULTILINE))
UNPICKLING = {
    "pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "read_pickle", "unsafe_load", "full_load",
    "system", "popen", "builtin eval", "builtin exec",
}  # fmt: skip
"""Modules and functions that run what they read."""
ALLOWED = {
    "trainables/output_layers/custom.py": {
        "builtin exec"
    },  # the file of layers that the user's own command named
    "orchestrator/schedule/tune.py": {
        "pickle"
    },  # what Tune in this process has just written to a folder of mode 700
}


def test_every_package_is_pinned_with_the_hashes_of_its_files() -> None:
    entries = re.split(r"\n(?=\S)", LOCK.strip())
    assert len(entries) == len(PINNED) > 100
    for entry in entries:
        assert re.fullmatch(
            r"\S+==\S+( ; [^\n]*?)?( \\\n    --hash=sha256:[0-9a-f]{64})+", entry
        ), entry
    assert "://" not in LOCK, "no address of a registry"


def test_the_lock_holds_all_that_the_project_asks_for_but_torch() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = (project["dependencies"], *project["optional-dependencies"].values())
    needs = [Requirement(line) for group in groups for line in group]
    wanted = {
        str(canonicalize_name(need.name)): need for need in needs if need.name != project["name"]
    }
    torch = Requirement((ROOT / "torch.txt").read_text().splitlines()[-1])
    assert wanted.pop("torch").specifier.contains(next(iter(torch.specifier)).version)
    assert "torch" not in PINNED
    for name, need in wanted.items():
        assert need.specifier.contains(PINNED[name]), name


def names_used(file: Path) -> set[str]:
    """Modules imported, and functions and methods called."""
    used: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Import():
                used |= {alias.name.partition(".")[0] for alias in node.names}
            case ast.ImportFrom(module=module):
                used |= {str(module).partition(".")[0], *(alias.name for alias in node.names)}
            case ast.Call(func=ast.Attribute(attr=name)):
                used.add(name)
            case ast.Call(func=ast.Name(id=name)):
                used |= {name, f"builtin {name}"}
    return used


def test_nothing_is_unpickled_that_a_stranger_could_have_written() -> None:
    files = [
        file
        for room in ("orchestrator", "trainables", "search_spaces", "gpu_proof")
        for file in (ROOT / room).rglob("*.py")
    ]
    assert len(files) > 150
    for file in [*files, ROOT / "sweep.py"]:
        name = str(file.relative_to(ROOT))
        assert names_used(file) & UNPICKLING <= ALLOWED.get(name, set()), name


def test_arrays_and_weights_are_read_as_numbers_alone() -> None:
    """numpy's and torch's readers take a pickle unless they are told not to."""
    for room in ("orchestrator", "trainables"):
        for file in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                match node:
                    case ast.Call(
                        func=ast.Attribute(value=ast.Name(id="np"), attr="load"), keywords=keywords
                    ):
                        pass
                    case ast.Call(func=ast.Attribute(attr="read_array"), keywords=keywords):
                        pass
                    case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="load")):
                        raise AssertionError(f"{file} reads a pickle")
                    case _:
                        continue
                said = {keyword.arg: keyword.value for keyword in keywords}.get("allow_pickle")
                assert isinstance(said, ast.Constant) and said.value is False, file
