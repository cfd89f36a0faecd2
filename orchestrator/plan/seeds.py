"""The seeds of each setting of a study at a scale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from orchestrator.variants import setting_hash
from search_spaces.models import RANDOM_SEEDS
from search_spaces.scales import Scale
from search_spaces.study import Study, group_of
from trainables.config import AnyConfig, Command, Trainable, TrueRankConfig
from trainables.errors import UserError

MAX_SEEDS = 1000
"""Largest number of seeds of a trial."""
SEEDS = (*RANDOM_SEEDS, *range(10_001, 10_001 + MAX_SEEDS - len(RANDOM_SEEDS)))
"""Random seeds; those after the first ten are above them all."""


def seed_count(
    study: Study,
    scale: Scale,
    study_configs: Sequence[AnyConfig],
    requested: int | None,
) -> int:
    """Return the number of seeds per setting: `requested`, or by default the study's number.

    Raises UserError for an invalid number, or if the study cannot use more seeds.
    """
    count = study.seeds_at(scale.name) if requested is None else requested
    if requested is None and count == 1:
        return 1
    option = "--seeds" if requested is not None else f"the field seeds of {study.name}"
    refuse_seeds(study, study_configs, option=option)
    if not 1 <= count <= MAX_SEEDS:
        raise UserError(f"{option}: takes 1 to {MAX_SEEDS} seeds per setting; got {count}.")
    return count


def refuse_seeds(study: Study, configs: Sequence[AnyConfig], *, option: str = "--seeds") -> None:
    """Raise UserError, which names `option`, if the study cannot use additional seeds."""
    if reason := obstacle_to_seeds(study, configs):
        raise UserError(
            f"{option}: needs a study with one seed per setting, but {reason}. Leave it out."
        )


def repeat_with_seeds(
    trials: Sequence[tuple[str, AnyConfig]], count: int
) -> list[tuple[str, AnyConfig]]:
    """Return each named trial with `count` seeds, in rounds of one seed each.

    The first round has the trials' own seeds. The trial that measures a generated language's true
    matrix depends on no seed, and is not repeated.
    """
    if count == 1:
        return list(trials)
    seeds = [(config.seed, *_further_seeds(config)) for _, config in trials]
    rounds = [
        (name, config.model_copy(update={"seed": seeds_of_trial[number]}))
        for number in range(count)
        for (name, config), seeds_of_trial in zip(trials, seeds, strict=True)
        if not (number and isinstance(config, TrueRankConfig))
    ]
    return [(f"{group_of(name)} seed={config.seed}", config) for name, config in rounds]


def random_seeds(config: AnyConfig) -> Sequence[int]:
    """Return the seeds of comparisons; they do not depend on a built-in config's own seed."""
    if isinstance(config, Trainable | Command):
        return range(config.seed, config.seed + MAX_SEEDS)
    return SEEDS


def _further_seeds(config: AnyConfig) -> Sequence[int]:
    return [seed for seed in random_seeds(config) if seed != config.seed][: MAX_SEEDS - 1]


def obstacle_to_seeds(study: Study, configs: Sequence[AnyConfig]) -> str:
    """Return why a study cannot use additional seeds, or "" if it can."""
    if study.tuning is not None:
        return f"{study.name} tunes, with {len(study.tuning.seeds)} seeds for its final trials"
    if not study.trains:
        return f"{study.name} trains nothing"
    contents = (config.model_dump(mode="json") for config in configs)
    repeats = max(Counter(map(setting_hash, contents)).values())
    return f"{study.name} has {repeats} seeds of a setting" if repeats > 1 else ""
