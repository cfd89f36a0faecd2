"""Small texts that workers leave for their driver with Ray's head, wherever they run: the newest of
each worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import RayError
from ray.experimental import internal_kv

NAMESPACE = b"sweep-signs"
ANSWER_S = 2.0


def leave_sign(key: str, text: bytes) -> None:
    """In a worker: this text instead of an earlier one; nothing where Ray's head does not
    answer."""
    try:
        _head().internal_kv_put(key.encode(), text, True, NAMESPACE, timeout=ANSWER_S)
    except RayError:
        return


def signs(keys: Sequence[str]) -> dict[str, bytes] | None:
    """In the driver: the newest text of each key that has one; None where Ray's head does not
    answer."""
    try:
        answer: dict[bytes, bytes] = _head().internal_kv_multi_get(
            [key.encode() for key in keys], NAMESPACE, ANSWER_S
        )
    except RayError:
        return None
    return {key.decode(): text for key, text in answer.items()}


def remove_sign(key: str) -> None:
    """Forget the text, if there is one and Ray's head answers."""
    try:
        _head().internal_kv_del(key.encode(), False, NAMESPACE, timeout=ANSWER_S)
    except RayError:
        return


def machine_here() -> str:
    """Ray's id of the machine that this process runs on."""
    return str(ray.get_runtime_context().get_node_id())


def _head() -> Any:
    return internal_kv.internal_kv_get_gcs_client()  # type: ignore[no-untyped-call]  # Ray has no type for it
