"""The options of one run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from orchestrator.storage import Storage
from trainables.runtime import Runtime


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Locations and resources of a run. They never change a trial's result."""

    storage: Storage
    """Every machine of the cluster must reach this storage."""
    runtime: Runtime = field(default_factory=Runtime)
    store_url: str = field(default="", repr=False)
    """Empty on workers."""
    address: str | None = None
    """Address of a Ray cluster, "host:port" or "auto"; None starts Ray here."""
    ray_dashboard: bool = False
    """Start Ray's dashboard, which takes two cores for seconds. Ignored with `address`."""
    gpus_per_trial: float = 0.0
    """0, a fraction of one GPU, or 1."""
    max_concurrent: int | None = None
    """Maximum number of workers at a time; None starts all that fit."""
    max_attempts: int = 2
    """A trial fails when its process has died this many times."""
    max_failures: int | None = None
    """The run stops after this many failed trials; None: see `orchestrator.schedule.failures`."""
    trial_timeout_s: float | None = None
    """Longest time without progress; None: see `orchestrator.schedule.worker_watch`."""
    log_to: tuple[str, ...] = ()
    keep_weights: Literal["all", "best", "none"] = "all"

    @property
    def takes_own_gpu(self) -> bool:
        """True if trials use this machine's GPUs."""
        return bool(self.gpus_per_trial) and self.address is None

    def for_workers(self) -> RunOptions:
        """Return a copy without options that may hold a password."""
        return replace(self, store_url="", log_to=())
