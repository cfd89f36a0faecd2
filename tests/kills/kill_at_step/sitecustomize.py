"""Kill a process at a chosen function call, and change times and locks.

Python imports this module at start if this folder is in PYTHONPATH. It reads these variables:

- CHAOS_STEP, for example "before 3 trainables.trial_folder.folder:TrialFolder.take_over": SIGKILL
before the third call of this function in a process, or "after" that call has returned.

- CHAOS_MARK: a file written before the kill; if it exists already, no process is killed.

- CHAOS_CHECKPOINT_S: seconds between checkpoints.

- CHAOS_LEASE_S: seconds after which another host may take a trial's fence.

- CHAOS_NO_LOCKS: if set, locks of trials' folders do nothing, as between hosts that share no locks.
"""

from __future__ import annotations

import functools
import itertools
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType, SimpleNamespace
from typing import Any


def _die() -> None:
    try:
        os.close(os.open(os.environ["CHAOS_MARK"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def _put_kill(module: ModuleType) -> None:
    when, number, target = os.environ["CHAOS_STEP"].split()
    *owners, name = target.partition(":")[2].split(".")
    owner = functools.reduce(getattr, owners, module)
    function, calls = getattr(owner, name), itertools.count(1)

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        due = next(calls) == int(number)
        if due and when == "before":
            _die()
        answer = function(*arguments, **options)
        if due:
            _die()
        return answer

    setattr(owner, name, call)


def _hasten_checkpoints(module: ModuleType) -> None:
    options = module.Runtime.__init__.__kwdefaults__
    options["checkpoint_every_s"] = float(os.environ["CHAOS_CHECKPOINT_S"])


def _shorten_lease(module: ModuleType) -> None:
    vars(module)["LEASE_S"] = float(os.environ["CHAOS_LEASE_S"])
    vars(module)["RENEW_S"] = module.LEASE_S / 6


def _drop_locks(module: ModuleType) -> None:
    vars(module)["fcntl"] = SimpleNamespace(LOCK_EX=0, LOCK_NB=0, flock=lambda *_: None)


CHANGES: dict[str, Callable[[ModuleType], None]] = {}
if "CHAOS_CHECKPOINT_S" in os.environ:
    CHANGES["trainables.runtime"] = _hasten_checkpoints
if "CHAOS_LEASE_S" in os.environ:
    CHANGES["trainables.trial_folder.fence"] = _shorten_lease
if "CHAOS_NO_LOCKS" in os.environ:
    CHANGES["trainables.trial_folder.files"] = _drop_locks
if "CHAOS_STEP" in os.environ:
    CHANGES[os.environ["CHAOS_STEP"].split()[2].partition(":")[0]] = _put_kill


class _Changes:
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, _target: object = None
    ) -> ModuleSpec | None:
        if name not in CHANGES:
            return None
        spec = PathFinder.find_spec(name, path)
        assert spec is not None and spec.loader is not None, name
        load = spec.loader.exec_module

        def load_and_change(module: ModuleType) -> None:
            load(module)
            CHANGES[name](module)

        spec.loader.exec_module = load_and_change  # type: ignore[method-assign]
        return spec


if CHANGES:
    sys.meta_path.insert(0, _Changes())
