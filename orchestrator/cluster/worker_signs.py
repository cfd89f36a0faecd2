"""Short status texts of workers, kept by the head of the Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.exceptions import RayError

from orchestrator.cluster import ray_private

NAMESPACE = b"sweep-signs"
ANSWER_S = 2.0


def leave_sign(key: str, text: bytes) -> None:
    """Store a worker's text under `key`. Does nothing if Ray's head does not answer."""
    _ask(lambda head: head.internal_kv_put(key.encode(), text, True, NAMESPACE, timeout=ANSWER_S))


def signs(keys: Sequence[str]) -> dict[str, bytes] | None:
    """Return the newest text of each key that has one; None if Ray's head does not answer."""
    names = [key.encode() for key in keys]
    texts = _ask(lambda head: head.internal_kv_multi_get(names, NAMESPACE, ANSWER_S))
    return None if texts is None else {key.decode(): text for key, text in texts.items()}


def remove_sign(key: str) -> None:
    """Delete the text of `key`. Does nothing if Ray's head does not answer."""
    _ask(lambda head: head.internal_kv_del(key.encode(), False, NAMESPACE, timeout=ANSWER_S))


def machine_here() -> str:
    """Return Ray's node id of this machine."""
    return str(ray.get_runtime_context().get_node_id())


def _ask(action: Callable[[Any], Any]) -> Any:
    # Ray's public functions for this take no time limit.
    client = ray_private.find(ray_private.HEAD)
    try:
        return None if client is None else action(client())
    except RayError:
        return None
