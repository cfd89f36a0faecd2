"""What a scale makes of a trial that trains no language model: the same computation on smaller arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from trainables.experiment_configs import DirichletConfig, ExperimentConfig

Config = TypeVar("Config", bound=ExperimentConfig)
Changes = Callable[[Any], Mapping[str, Any]]
"""From a config to the fields that the scale replaces."""


def shrink(scale: str, config: Config) -> Config:
    """The config at the scale of that name; at scale paper, and where its kind has no rule, the config itself."""
    changes = RULES.get(scale, {}).get(type(config))
    return config if changes is None else config.model_copy(update=changes(config))


def _dirichlet(size: int) -> Changes:
    """Of so many targets and outcomes."""
    return lambda config: {"targets": min(size, config.targets), "outcomes": min(size, config.outcomes)}


RULES: Mapping[str, Mapping[type[ExperimentConfig], Changes]] = {
    "smoke": {DirichletConfig: _dirichlet(40)},
    "quick": {DirichletConfig: _dirichlet(300)},
}
