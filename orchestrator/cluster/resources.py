"""Number of packs that fit on the machines. A pack is the trials of one worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor

from orchestrator.cluster.run_options import RunOptions
from trainables.errors import UserError


def check_gpus(gpus: float) -> None:
    """Raise UserError unless `gpus` is 0, a fraction of one GPU, or 1."""
    if not 0 <= gpus <= 1:
        raise UserError(
            f"--gpus-per-trial: {gpus:g} is not 0, a fraction of one GPU, or 1. A model trains on "
            "one GPU; several GPUs run several trials."
        )


def per_pack(options: RunOptions) -> dict[str, float]:
    """Return the cores and GPUs that one worker requests from Ray."""
    # Ray gives no cores to a worker that requests only a GPU.
    cores: dict[str, float] = {"CPU": options.runtime.threads}
    return {**cores, "GPU": options.gpus_per_trial} if options.gpus_per_trial > 0 else cores


def slots_of(nodes: Sequence[Mapping[str, float]], options: RunOptions) -> int:
    """Return how many packs fit on machines with these resources at a time.

    Raises UserError with the needed and available amounts if none fits.
    """
    need = per_pack(options)
    slots = sum(fit_on(node, options) for node in nodes)
    if slots > 0:
        return slots
    gpus = sum(node.get("GPU", 0.0) for node in nodes)
    if need.get("GPU", 0) > gpus:
        raise UserError(
            f"--gpus-per-trial: a trial needs {need['GPU']:g} GPU, but there are {gpus:g}. Use 0 "
            "to train on CPUs, or a cluster with GPUs (--address)."
        )
    largest = max((node.get("CPU", 0.0) for node in nodes), default=0.0)
    gpu = f" and {need['GPU']:g} of its GPUs" if "GPU" in need else ""
    raise UserError(
        f"A trial needs {need['CPU']:g} of one machine's cores{gpu}. The largest machine "
        f"has {largest:g} cores; all machines have {gpus:g} GPUs. Lower --cores-per-trial or "
        "--gpus-per-trial."
    )


def fit_on(node: Mapping[str, float], options: RunOptions) -> int:
    """Return how many packs fit on one machine at a time."""
    need = per_pack(options)
    slots = floor(node.get("CPU", 0.0) / need["CPU"])
    if "GPU" not in need:
        return slots
    # A fraction never spans two GPUs: at 0.4 a GPU runs two packs, and 0.2 stays free.
    return min(slots, floor(node.get("GPU", 0.0)) * floor(1 / need["GPU"]))
