"""Number of packs that fit on the machines. A pack is the trials of one worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor

from orchestrator.cluster.run_options import RunOptions
from trainables.errors import UserError

SHORTEST_TIMEOUT_S = 10.0


def check_timeout(options: RunOptions) -> None:
    """Raise UserError if `--trial-timeout` is shorter than `SHORTEST_TIMEOUT_S`."""
    if options.trial_timeout_s is not None and not options.trial_timeout_s >= SHORTEST_TIMEOUT_S:
        raise UserError(
            f"--trial-timeout: {options.trial_timeout_s:g} s is too short, because workers report "
            f"every 2 s. Use at least {SHORTEST_TIMEOUT_S:g}."
        )


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
    cores: dict[str, float] = {"cpu": options.runtime.threads}
    return {**cores, "gpu": options.gpus_per_trial} if options.gpus_per_trial > 0 else cores


def slots_of(nodes: Sequence[Mapping[str, float]], options: RunOptions) -> int:
    """Return how many packs fit on machines with these resources at a time.

    Raises UserError with the needed and available amounts if none fits.
    """
    need = per_pack(options)
    slots = sum(fit_on(node, options) for node in nodes)
    if slots > 0:
        return slots
    gpus = sum(node.get("GPU", 0.0) for node in nodes)
    if need.get("gpu", 0) > gpus:
        raise UserError(
            f"--gpus-per-trial: a trial needs {need['gpu']:g} GPU, but there are {gpus:g}. Use 0 "
            "to train on CPUs, or a cluster with GPUs (--address)."
        )
    largest = max((node.get("CPU", 0.0) for node in nodes), default=0.0)
    gpu = f" and {need['gpu']:g} of its GPUs" if "gpu" in need else ""
    raise UserError(
        f"A trial needs {need['cpu']:g} of one machine's cores{gpu}. The largest machine "
        f"has {largest:g} cores; all machines have {gpus:g} GPUs. Lower --cores-per-trial or "
        "--gpus-per-trial."
    )


def fit_on(node: Mapping[str, float], options: RunOptions) -> int:
    """Return how many packs fit on one machine at a time."""
    need = per_pack(options)
    slots = floor(node.get("CPU", 0.0) / need["cpu"])
    if "gpu" not in need:
        return slots
    # A fraction never spans two GPUs: at 0.4 a GPU runs two packs, and 0.2 stays free.
    return min(slots, floor(node.get("GPU", 0.0)) * floor(1 / need["gpu"]))
