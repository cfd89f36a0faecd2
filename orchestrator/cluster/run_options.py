"""The options of one run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from orchestrator.storage import Storage
from trainables.runtime import Runtime


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Locations and resources; none changes a result."""

    storage: Storage
    """Same storage on every machine of the cluster."""
    runtime: Runtime = field(default_factory=Runtime)
    store_url: str = field(default="", repr=False)
    """Empty on workers."""
    address: str | None = None
    """Ray cluster as "host:port" or "auto"; None starts Ray here."""
    ray_dashboard: bool = False
    """Applies only to a Ray started here; takes two cores for seconds."""
    gpus_per_trial: float = 0.0
    """0, a fraction of one GPU, or 1."""
    max_concurrent: int | None = None
    """Limit on packs at a time; None runs all that fit."""
    max_attempts: int = 2
    """Number of process deaths after which a trial fails."""
    trial_timeout_s: float | None = None
    """Limit on time without progress; None applies `orchestrator.schedule.worker_watch`."""
    log_to: tuple[str, ...] = ()
    """See `orchestrator.watch.log_targets`."""

    @property
    def takes_own_gpu(self) -> bool:
        """True if trials use this machine's GPUs."""
        return bool(self.gpus_per_trial) and self.address is None

    def for_workers(self) -> RunOptions:
        """Return a copy without options that may hold a password."""
        return replace(self, store_url="", log_to=())
