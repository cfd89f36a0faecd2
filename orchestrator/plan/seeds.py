"""How many seeds each setting of a study gets at a scale, and which ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from search_spaces.models import RANDOM_SEEDS
from search_spaces.scales import Scale
from search_spaces.study import Study, group_of
from trainables.config import AnyConfig, TrueRankConfig
from trainables.errors import UserError


def seed_count(
    study: Study,
    scale: Scale,
    written: Sequence[AnyConfig],
    resolved: Sequence[AnyConfig],
    requested: int | None,
) -> int:
    """Seeds of each setting: as requested with `--seeds`, else what the study says of the scale.

    `written` are the study's own trials, `resolved` those that the scale and `--set` make of them.
    Raises UserError for a number that cannot be, and for a study that has no use for more seeds.
    """
    count = study.seeds.get(scale.name, 1) if requested is None else requested
    if requested is None and count == 1:
        return 1
    what = "--seeds" if requested is not None else f"the field seeds of {study.name}"
    refuse_seeds(study, written, what=what)
    most = 1 + min(len(_further_seeds(config.seed)) for config in resolved)
    if not 1 <= count <= most:
        raise UserError(
            f"{what} says how many seeds each setting gets, from 1 to {most}; got {count}: choose "
            f"another"
        )
    return count


def refuse_seeds(study: Study, configs: Sequence[AnyConfig], *, what: str = "--seeds") -> None:
    """Raise UserError for a study that has no use for more seeds; `what` asks for them."""
    if reason := obstacle_to_seeds(study, configs):
        raise UserError(
            f"{what} is for studies that write each setting down with one seed, and {reason}: "
            f"leave it out"
        )


def repeat_with_seeds(
    trials: Sequence[tuple[str, AnyConfig]], count: int
) -> list[tuple[str, AnyConfig]]:
    """Names and configs of `count` seeds of each of these: all with their own first, then all with
    another one.

    So a sweep that is interrupted has whole rounds of the study, and seeds are crossed with
    settings: what a seed does to all of them alike can be told from what it does to one. The truth
    of a generated language is no model that a seed changes, and stays one trial."""
    if count == 1:
        return list(trials)
    rounds = [(f"{group_of(name)} seed={config.seed}", config) for name, config in trials]
    for number in range(count - 1):
        for name, config in trials:
            if not isinstance(config, TrueRankConfig):
                seed = _further_seeds(config.seed)[number]
                rounds.append(
                    (f"{group_of(name)} seed={seed}", config.model_copy(update={"seed": seed}))
                )
    return rounds


def _further_seeds(first: int) -> list[int]:
    return [seed for seed in RANDOM_SEEDS if seed != first]


def obstacle_to_seeds(study: Study, configs: Sequence[AnyConfig]) -> str:
    """Why a study with these trials has no use for more seeds; empty where it has."""
    if study.tuning is not None:
        return f"{study.name} tunes, with {len(study.tuning.seeds)} seeds of each side's best"
    if not study.trains:
        return f"{study.name} trains nothing"
    most = max(
        Counter(
            config.model_copy(update={"seed": 0}).canonical_json() for config in configs
        ).values()
    )
    return f"{study.name} has {most} of each" if most > 1 else ""
