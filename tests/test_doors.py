from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = sorted(
    str(door.parent.relative_to(ROOT)).replace("/", ".")
    for door in ROOT.glob("[ot]r*/*/__init__.py")
)


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize(
    "folder", ["orchestrator", "trainables", "search_spaces", "gpu_proof", "benchmarks"]
)
def test_rooms_are_entered_by_doors(folder: str) -> None:
    past_the_door = [
        f"{path.relative_to(ROOT)}: {module}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for module in imports(path)
        for room in ROOMS
        if module.startswith(f"{room}.") and ROOT / room.replace(".", "/") not in path.parents
    ]
    assert past_the_door == []


@pytest.mark.parametrize("room", ROOMS)
def test_every_door_is_documented(room: str) -> None:
    door = import_module(room)
    assert door.__doc__ and len(door.__doc__) > 20
    names = Path(str(door.__file__)).with_suffix(".pyi")
    stub = names if names.exists() else Path(str(door.__file__))
    exported = [
        alias.asname or alias.name
        for node in ast.walk(ast.parse(stub.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith(room))
        for alias in node.names
    ]
    assert exported
    # Importing a module would replace an exported name that equals the module's name.
    assert not [name for name in exported if isinstance(getattr(door, name), ModuleType)]


def test_only_listed_modules_are_outside_rooms() -> None:
    loose = {
        folder: {path.name for path in (ROOT / folder).glob("*.py")}
        for folder in ("orchestrator", "trainables")
    }
    assert loose["orchestrator"] == {"__init__.py", "words.py"}
    assert loose["trainables"] == {
        "__init__.py",
        "__main__.py",
        "device.py",
        "draws.py",
        "errors.py",
        "gpu_probe.py",
        "one_element_kernel.py",
        "parameters.py",
        "pulse.py",
        "runtime.py",
    }
