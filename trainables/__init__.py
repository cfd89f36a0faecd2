"""Training and measuring of single trials; imports neither Ray nor SQL."""

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any


def door(room: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` that import a package's names on first use.

    The `.pyi` stub next to `file` lists the names. Late imports keep torch and Ray out of a plan. A
    name must differ from its module's name, or Python would return the module.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    modules = {
        alias.name: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def getattr_of_room(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f".{modules[name]}", room), name)

    return getattr_of_room, lambda: sorted(modules)
