"""Every private part of Ray that this project replaces or uses: one function a part, with the
reason.

`PRIVATE` lists them all; a test sees that the installed Ray still has each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PRIVATE = (
    "ray._private.utils:set_sigterm_handler",
    "ray._private.worker:print_to_stdstream",
    "ray._private.ray_constants:ENABLE_RAY_CLUSTER",
    "ray._private.worker:_global_node",
    "ray._private.node:Node.kill_all_processes",
    "ray._private.node:Node.dead_processes",
    # These `local_node.py` overrides or calls.
    "ray._private.node:Node.start_monitor",
    "ray._private.node:Node.start_log_monitor",
    "ray._private.node:Node.start_api_server",
    "ray._private.node:Node.start_raylet",
    "ray._raylet:persist_port",
    "ray._private.services:_build_python_executable_command_memory_profileable",
    "ray.tune.execution.class_cache:DEFAULT_ENV_VARS",
    "ray.tune.execution.class_cache:ENV_VARS_TO_PROPAGATE",
    "ray._private.authentication.authentication_token_setup:maybe_enable_token_auth_if_token_available",
    "ray.air._internal.usage:tag_callbacks",
    "ray._raylet:setproctitle",
    # This `signs.py` calls: the functions beside it take no time limit.
    "ray.experimental.internal_kv:internal_kv_get_gcs_client",
    # These two `schedule/tune.py` calls itself: no other part of Tune ends all packs, or one that
    # waits.
    "ray.tune.execution.tune_controller:TuneController.request_stop_experiment",
    "ray.tune.execution.tune_controller:TuneController.stop_trial",
)


def leave_sigterm_alone() -> None:
    """While it starts, Ray would have SIGTERM end the process at once, without its own
    processes."""
    from ray._private import utils

    def leave_as_it_is(sigterm_handler: object) -> None:
        """In place of Ray's taking of SIGTERM."""

    utils.set_sigterm_handler = leave_as_it_is


def print_no_deaths() -> None:
    """Ray prints a page for every process that dies; the dispatcher says it in a sentence."""
    from ray._private import worker

    def print_nothing(data: dict[str, Any], ignore_prefix: bool) -> None:
        """In place of Ray's printing."""

    worker.print_to_stdstream = print_nothing


def count_no_callbacks() -> None:
    """For its usage statistics, which are off, Tune would import MLflow and others wherever they
    are installed."""
    from ray.air._internal import usage

    usage.tag_callbacks = lambda callbacks: False  # noqa: ARG005  (the signature of what it replaces)


@contextmanager
def on_loopback() -> Iterator[None]:
    """Without this Ray replaces 127.0.0.1 by the machine's outward address and listens on all of
    them."""
    from ray._private import ray_constants

    with _replaced(ray_constants, "ENABLE_RAY_CLUSTER", False):
        yield


@contextmanager
def helpers_later() -> Iterator[None]:
    """Ray would start its dashboard and agents before the first worker, and wait for them; see
    `local_node`."""
    from ray._private import node, services

    from orchestrator.cluster import local_node

    name = "_build_python_executable_command_memory_profileable"
    command_of = getattr(services, name)
    with (
        _replaced(node, "Node", local_node.LocalNode),
        _replaced(local_node.LocalNode, "starting", None),
        _replaced(
            services,
            name,
            lambda *which, **options: local_node.later(command_of(*which, **options)),
        ),
    ):
        yield


def use_ready_workers() -> None:
    """Ray has a worker ready for each core; Tune would have them started anew, with variables that
    they have."""
    from ray.tune.execution import class_cache

    class_cache.DEFAULT_ENV_VARS = {}
    class_cache.ENV_VARS_TO_PROPAGATE = set()


def before_ray_ends_its_processes(action: Callable[[], None]) -> None:
    """At its shutdown Ray lets SIGTERM kill this process, and then takes a second to end its own:
    do this between."""
    from ray._private import worker

    node = worker._global_node
    if node is None:
        return
    end_processes = node.kill_all_processes

    def guarded(*arguments: Any, **options: Any) -> None:
        action()
        end_processes(*arguments, **options)

    node.kill_all_processes = guarded


def dead_processes() -> list[str]:
    """Which of Ray's processes that this one started have ended, but for the dashboard, without
    which trials go on.

    While Ray starts, the GCS alone: Ray waits a minute for it and then ends this process; of others
    it says what ailed them."""
    from ray._private import worker

    from orchestrator.cluster.local_node import LocalNode

    node: Any = worker._global_node or LocalNode.starting
    try:
        dead = [] if node is None else [name for name, _ in node.dead_processes()]
    except RuntimeError:  # one more is being started
        return []
    return [
        name
        for name in dead
        if name == "gcs_server" or (worker._global_node and name != "dashboard")
    ]


def show_token() -> None:
    """Ray shows its token by itself only to a cluster that it starts or finds with "auto"."""
    from ray._private.authentication import authentication_token_setup

    authentication_token_setup.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)


def name_process(name: str) -> None:
    """The dashboard and ps show a worker by this name; with every report Ray calls it by Tune's
    function again."""
    from ray._raylet import setproctitle  # type: ignore[attr-defined]  # Ray's extension module has no types

    setproctitle(f"ray::{name}")


@contextmanager
def _replaced(owner: object, name: str, value: object) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)
