"""The options of one run, from the command to the workers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from orchestrator.storage import Storage
from trainables.runtime import Runtime


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where results go and what may be used to get them. Nothing here changes a result."""

    storage: Storage
    """Of trials and reports; the same place on every machine of the cluster."""
    runtime: Runtime = field(default_factory=Runtime)
    store_url: str = field(default="", repr=False)
    """Of the results store; empty on workers, which have no use for it."""
    address: str | None = None
    """Of a running Ray cluster, "host:port" or "auto"; None starts Ray on this machine."""
    ray_dashboard: bool = False
    """Whether a Ray that is started here shows its dashboard, which takes seconds of two cores."""
    gpus_per_trial: float = 0.0
    """0, a fraction of one GPU, or 1: a model trains on one GPU."""
    max_concurrent: int | None = None
    """At most so many packs at the same time; None: as many as fit."""
    max_attempts: int = 2
    """How often a trial may be started before a process death counts as its failure."""
    trial_timeout_s: float | None = None
    """A trial that gives no sign of progress for so long is ended; None: see
    `orchestrator.schedule.worker_watch`."""
    log_to: tuple[str, ...] = ()
    """See `orchestrator.watch.log_targets`."""

    @property
    def takes_own_gpu(self) -> bool:
        """Whether trials ask for a GPU of this machine, and not of a cluster's."""
        return bool(self.gpus_per_trial) and self.address is None

    def for_workers(self) -> RunOptions:
        """The same without what may hold a password."""
        return replace(self, store_url="", log_to=())
