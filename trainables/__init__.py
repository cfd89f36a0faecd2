"""What one trial does: train a model, measure it. Needs torch, numpy, scipy and pydantic; neither
Ray nor SQL."""

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any


def door(room: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a room: each name in the stub beside its `file` is
    imported when it is first used.

    A plan needs neither torch nor Ray, and is made before they would be imported. No name is that
    of its module, which Python would put in its place.
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
