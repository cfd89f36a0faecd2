"""Run a trial that trains no language model, and leave its result as a file."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module

from trainables.config import ExperimentConfig
from trainables.measurements import PeakMemory
from trainables.runtime import Runtime
from trainables.training import DivergedError
from trainables.trial_folder import Measured, TrialFolder, TrialOutcome, describe, spectrum_of


def run_experiment(config: ExperimentConfig, folder: TrialFolder, runtime: Runtime) -> TrialOutcome:
    """Compute the trial's measurements; the outcome is `done` or `diverged` and on disk before it is returned.

    Raises SupersededError, with nothing written, where another worker has taken the trial over.
    """
    measure: Callable[[ExperimentConfig, Runtime], dict[str, Measured]]
    measure = import_module(f"trainables.experiments.{config.kind}").measure
    memory, start_s = PeakMemory(runtime.device), time.monotonic()
    outcome = TrialOutcome(
        trial_id=config.trial_id, state="done", environment=describe(runtime.device, runtime.threads)
    )
    measured: dict[str, Measured] = {}
    try:
        measured = measure(config, runtime)
        cost = {"wall_seconds": time.monotonic() - start_s, "peak_memory_mib": memory.peak_mib()}
        metrics = {"cost@1": cost, **{name: metrics for name, (metrics, _) in measured.items()}}
        outcome = outcome.model_copy(update={"measurements": metrics})
    except DivergedError as error:
        outcome = outcome.model_copy(update={"state": "diverged", "cause": str(error)})
    folder.write_result(outcome, spectrum_of(measured.values()))
    return outcome
