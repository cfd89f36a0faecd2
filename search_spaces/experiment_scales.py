"""Scales of trials without a language model: they shrink arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from trainables.config import (
    DirichletConfig,
    ExperimentConfig,
    LayerJacobianConfig,
    LayerTaskConfig,
    PressNoiseConfig,
)

Config = TypeVar("Config", bound=ExperimentConfig)
Changes = Callable[[Any], Mapping[str, Any]]


def shrink(scale: str, config: Config) -> Config:
    """Return the config at the scale; unchanged if no rule applies."""
    changes = RULES.get(scale, {}).get(type(config))
    return config if changes is None else config.model_copy(update=changes(config))


def _dirichlet(size: int) -> Changes:
    return lambda config: {
        "targets": min(size, config.targets),
        "outcomes": min(size, config.outcomes),
    }


def _inputs(count: int) -> Changes:
    return lambda config: {"inputs": min(count, config.inputs)}


def _steps(steps: int, examples: int) -> Changes:
    sizes = ("train_examples", "valid_examples", "test_examples")
    return lambda config: {
        "steps": min(steps, config.steps),
        **{name: min(examples, getattr(config, name)) for name in sizes},
    }


def _press_noise(size: int) -> Changes:
    return lambda config: {"size": min(size, config.size)}


RULES: Mapping[str, Mapping[type[ExperimentConfig], Changes]] = {
    "smoke": {
        DirichletConfig: _dirichlet(40),
        LayerJacobianConfig: _inputs(5),
        LayerTaskConfig: _steps(20, 500),
        PressNoiseConfig: _press_noise(120),
    },
    "quick": {
        DirichletConfig: _dirichlet(300),
        LayerJacobianConfig: _inputs(200),
        LayerTaskConfig: _steps(1_000, 5_000),
        PressNoiseConfig: _press_noise(1_000),
    },
    "small": {PressNoiseConfig: _press_noise(3_000)},
}
