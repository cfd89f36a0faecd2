"""Trials that are to leave their stack, whose mates go on: the driver asks it of their worker, by
Ray's head."""

from __future__ import annotations

import json
from collections.abc import Collection

from orchestrator.cluster import leave_sign, remove_sign, signs


def ask_to_leave(key: str, trial_ids: Collection[str]) -> None:
    """In the driver: these trials of the pack are to stop. Nothing where the head does not
    answer."""
    leave_sign(_name(key), json.dumps(sorted(trial_ids)).encode())


def asked_to_leave(key: str) -> set[str]:
    """In the worker of the pack: the trials that are to stop, as far as the head answers."""
    text = (signs([_name(key)]) or {}).get(_name(key))
    return set() if text is None else set(json.loads(text))


def forget_asking(key: str) -> None:
    """In the driver: the pack is over."""
    remove_sign(_name(key))


def _name(key: str) -> str:
    return f"{key} leave"
