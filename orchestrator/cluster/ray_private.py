"""Every private part of Ray that this project uses. A missing part is reported once."""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable
from typing import Any

import ray

PRINTER = "ray._private.worker:print_to_stdstream"
TITLE = "ray._raylet:setproctitle"
ACTORS = "ray.tune.execution.class_cache:_ActorClassCache.get"
USAGE = "ray.air._internal.usage:tag_callbacks"
HEAD = "ray.experimental.internal_kv:internal_kv_get_gcs_client"
STOP = "ray.tune.execution.tune_controller:TuneController.stop_trial"
RELEASE = "ray.tune.execution.tune_controller:TuneController._cleanup_cached_actors"
LOSSES = {
    PRINTER: "Ray prints a page for each process that dies",
    TITLE: "ps does not show each worker's trial",
    ACTORS: "each worker starts seconds later",
    USAGE: "a sweep starts later if MLflow is installed",
    HEAD: "a hanging worker is not noticed",
    STOP: "trials that waited for a lost machine now need another machine of its size",
    RELEASE: "commands that share a cluster may wait for each other",
}


def find(name: str) -> Any:
    """Return Ray's private object `name`, a key of `LOSSES`; None if Ray does not have it."""
    assert name in LOSSES
    try:
        return pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return None


def losses() -> list[str]:
    """Return a sentence per missing private part: its name, and the consequence."""
    return [
        f"Ray {ray.__version__} has no {name.partition(':')[2]}: {loss}."
        for name, loss in LOSSES.items()
        if find(name) is None
    ]


def adapt_ray(*, starts_here: bool) -> None:
    """Stop Ray from printing a page per dead process, and from importing MLflow.

    If Ray `starts_here`, Tune also reuses workers that have already started.
    """
    actor_of = functools.cache(ray.remote)
    replacements: dict[str, Callable[..., Any]] = {
        PRINTER: lambda *_, **__: None,
        USAGE: lambda *_: False,
    }
    if starts_here:
        replacements[ACTORS] = lambda _cache, trainable: actor_of(trainable)
    for name, replacement in replacements.items():
        if find(name) is not None:
            owner, _, attribute = name.replace(":", ".").rpartition(".")
            setattr(pkgutil.resolve_name(owner), attribute, replacement)


def name_process(name: str) -> None:
    """Show `name` for this worker in ps and Ray's dashboard, until Ray changes it."""
    set_title = find(TITLE)
    if set_title is not None:
        set_title(f"ray::{name}")
