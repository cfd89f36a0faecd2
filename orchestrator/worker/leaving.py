"""Trials that are to leave their pack while others of it go on: the driver asks their worker, by
Ray's head."""

from __future__ import annotations

import json
from collections.abc import Collection

from orchestrator.cluster import leave_sign, remove_sign, signs


def ask_to_leave(key: str, trial_ids: Collection[str]) -> None:
    """In the driver, ask these trials of the pack to stop; nothing if the head does not answer."""
    leave_sign(_name(key), json.dumps(sorted(trial_ids)).encode())


def asked_to_leave(key: str) -> set[str]:
    """In the pack's worker, return the trials that are to stop, as far as the head answers."""
    text = (signs([_name(key)]) or {}).get(_name(key))
    return set() if text is None else set(json.loads(text))


def forget_asking(key: str) -> None:
    """In the driver, when the pack is over."""
    remove_sign(_name(key))


def _name(key: str) -> str:
    return f"{key} leave"
