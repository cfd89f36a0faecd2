"""What one trial does: train a model, measure it. Needs torch, numpy, scipy and pydantic; neither
Ray nor SQL."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def on_first_use(room: str, *modules: str) -> Callable[[str], Any]:
    """A `__getattr__` for the door of a room: its names from these modules, which load torch or
    numpy, when needed.

    A plan needs neither, and is made before they would be imported.
    """

    def getattr_of_room(name: str) -> Any:
        for module in modules if not name.startswith("__") else ():
            loaded = import_module(f"{room}.{module}")
            if hasattr(loaded, name):
                return getattr(loaded, name)
        raise AttributeError(f"module {room!r} has no attribute {name!r}")

    return getattr_of_room
