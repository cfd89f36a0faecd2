"""Dispatch of experiments to their modules."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from trainables.config import ExperimentConfig
from trainables.device import products_in
from trainables.pulse import PULSE, SLOWEST_FLOPS
from trainables.runtime import Runtime
from trainables.trial_folder import Measured


def measure_experiment(config: ExperimentConfig, runtime: Runtime) -> dict[str, Measured]:
    """Measure a trial with the module of its kind. Raises DivergedError."""
    PULSE.enter("in its measurement", quiet_s=config.operations / SLOWEST_FLOPS)
    measure: Callable[[ExperimentConfig, Runtime], dict[str, Measured]]
    measure = import_module(f"trainables.experiments.{config.kind}").measure
    with products_in("float32", runtime.device):
        return measure(config, runtime)
