"""Run a trial that trains no language model, and leave its result as a file."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module

from trainables.config import ExperimentConfig
from trainables.measurements import Measured, PeakMemory
from trainables.runtime import Runtime
from trainables.training import DivergedError
from trainables.trial_folder import TrialFolder, TrialOutcome, describe

Measurements = dict[str, Measured]


def run_experiment(config: ExperimentConfig, folder: TrialFolder, runtime: Runtime) -> TrialOutcome:
    """Compute the trial's measurements; the outcome is `done` or `diverged` and on disk before it is returned.

    Raises SupersededError, with nothing written, where another worker has taken the trial over.
    """
    measure: Callable[[ExperimentConfig, Runtime], Measurements]
    measure = import_module(f"trainables.experiments.{config.kind}").measure
    memory, start_s = PeakMemory(runtime.device), time.monotonic()
    environment = describe(runtime.device, runtime.threads)
    try:
        measured = measure(config, runtime)
    except DivergedError as error:
        outcome = TrialOutcome(trial_id=config.trial_id, state="diverged", cause=str(error), environment=environment)
        folder.write_result(outcome, None)
        return outcome
    cost = {"wall_seconds": time.monotonic() - start_s, "peak_memory_mib": memory.peak_mib()}
    metrics = {name: measurement.metrics for name, measurement in measured.items()}
    outcome = TrialOutcome(
        trial_id=config.trial_id, state="done", measurements={"cost@1": cost, **metrics}, environment=environment
    )
    spectra = [measurement.singular_values for measurement in measured.values()]
    folder.write_result(outcome, next((spectrum for spectrum in reversed(spectra) if spectrum is not None), None))
    return outcome
