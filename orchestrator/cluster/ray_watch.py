"""Is Ray alive? Asked of the system and not of Ray, which waits for its dead for minutes or for
ever."""

from __future__ import annotations

import threading
import time

import ray

from orchestrator.cluster import ray_patches
from orchestrator.cluster.sign_files import signs
from orchestrator.guard import start_again
from trainables.errors import GO_ON, UserError

LOOK_S = 0.5
HEAD_LOOK_S, HEAD_AWAY_S = 5.0, 20.0
"""How often a cluster's head is called, and how long it may not answer."""

_reason: str | None = None


class RayWatch:
    """A thread that looks at Ray while a sweep uses it, and has the command started again where Ray
    is gone.

    It looks at the processes of a Ray that this command started: without its raylet (which ends
    with either of Ray's agents) or its GCS nothing goes on. Of a cluster it calls the head."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, *, local: bool) -> None:
        """Look from now on, at a `local` Ray or at the cluster that this process has joined."""
        global _reason
        _reason = None
        look = self._look_at_processes if local else self._call_head
        self._thread = threading.Thread(target=look, name="ray watch", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Look no more: Ray is about to be ended."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _look_at_processes(self) -> None:
        while not self._over.wait(LOOK_S):
            dead = ray_patches.dead_processes()
            if dead:
                self._give_up(f"Ray's process {dead[0]} died")
                return

    def _call_head(self) -> None:
        answered_s = time.monotonic()
        while not self._over.wait(HEAD_LOOK_S):
            if signs([""]) is not None:
                answered_s = time.monotonic()
            elif time.monotonic() - answered_s >= HEAD_AWAY_S:
                address = ray.get_runtime_context().gcs_address
                self._give_up(f"The head of the Ray cluster, {address}, does not answer any more")
                return

    def _give_up(self, reason: str) -> None:
        global _reason
        _reason = reason
        start_again(reason)


def check_ray() -> None:
    """Raise UserError where Ray is gone and there is no guard to start this command again."""
    if _reason is not None:
        raise UserError(f"{_reason}: {GO_ON}")
