"""Python imports this at its start wherever this folder is in PYTHONPATH: in a command of a test,
and in all below it.

So a process dies by SIGKILL at a named step of a product that knows nothing of it, and checkpoints
come often enough for trials of one second. From the environment:

- CHAOS_STEP "before 3 trainables.trial_folder.folder:TrialFolder.take_over": the process dies that
  is about to call this for the third time; "after": once that call has returned.
- CHAOS_MARK: the file that it writes before; no other process dies where it is there already.
- CHAOS_CHECKPOINT_S: seconds between checkpoints.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

RUNTIME = "trainables.runtime"


def _die() -> None:
    try:
        os.close(os.open(os.environ["CHAOS_MARK"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def _dying(function: Callable[..., Any], when: str, number: int) -> Callable[..., Any]:
    calls = 0

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        due = calls == number
        if due and when == "before":
            _die()
        answer = function(*arguments, **options)
        if due and when == "after":
            _die()
        return answer

    return call


def _put_kill(module: ModuleType) -> None:
    when, number, place = os.environ["CHAOS_STEP"].split()
    *owners, name = place.partition(":")[2].split(".")
    owner = functools.reduce(getattr, owners, module)
    setattr(owner, name, _dying(getattr(owner, name), when, int(number)))


def _hasten_checkpoints(module: ModuleType) -> None:
    module.Runtime.__init__.__kwdefaults__["checkpoint_every_s"] = float(
        os.environ["CHAOS_CHECKPOINT_S"]
    )


class _Changes:
    """A finder that has a module changed once it is loaded."""

    def __init__(self, changes: dict[str, Callable[[ModuleType], None]]) -> None:
        self._changes = changes

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, _target: object = None
    ) -> ModuleSpec | None:
        """Python's own, with the change after it; None for all other modules."""
        if name not in self._changes:
            return None
        spec = PathFinder.find_spec(name, path)
        assert spec is not None and spec.loader is not None, name
        execute, change = spec.loader.exec_module, self._changes[name]

        def execute_and_change(module: ModuleType) -> None:
            execute(module)
            change(module)

        spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec


_wanted = {}
if "CHAOS_CHECKPOINT_S" in os.environ:
    _wanted[RUNTIME] = _hasten_checkpoints
if "CHAOS_STEP" in os.environ:
    _wanted[os.environ["CHAOS_STEP"].split()[2].partition(":")[0]] = _put_kill
if _wanted:
    sys.meta_path.insert(0, _Changes(_wanted))  # type: ignore[arg-type]
