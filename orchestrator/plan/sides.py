"""The two sides of a comparison: trials of two settings with common seeds."""

from __future__ import annotations

import re
from dataclasses import replace

from orchestrator.plan.request import PlanRequest
from orchestrator.plan.seeds import random_seeds
from orchestrator.plan.study_plan import Plan, make_plan
from orchestrator.store import PlannedTrial
from orchestrator.variants import apply_settings, combinations, parse_settings
from orchestrator.words import some_of
from search_spaces.scales import Scale
from search_spaces.study import Study, group_of
from trainables.config import AnyConfig
from trainables.errors import UserError, did_you_mean


def comparison_plan(
    study: Study,
    scale: Scale,
    corpus: str,
    request: PlanRequest,
    sides: tuple[str, str],
    seeds: int,
) -> Plan:
    """Return the plan of a comparison: a trial of A and one of B for each random seed.

    A side is the name of a group, followed by settings of this side: "softmax training.epochs=3".
    Raises UserError if the study has no such group, or cannot be compared.
    """
    if study.tuning is not None:
        raise UserError(
            f"compare: {study.name} chooses its trials by their results. Compare settings of "
            "another study."
        )
    plan = make_plan(study, scale, corpus, replace(request, seeds=None, all_trials=True))
    (_, a), (_, b) = groups = [_group(plan, side) for side in sides]
    if a.model_copy(update={"seed": b.seed}) == b:
        raise UserError(f"B: {sides[1]!r} has the same settings as A. Change one of them.")
    trials = tuple(
        PlannedTrial.of(config.model_copy(update={"seed": seed}), f"{group} seed={seed}")
        for seed in random_seeds(a)[:seeds]
        for group, config in groups
    )
    return replace(plan, trials=trials, seeds=seeds, settings=len(groups))


def _group(plan: Plan, side: str) -> tuple[str, AnyConfig]:
    """Return name and config of a side. A setting of the study keeps its name."""
    groups = {group_of(trial.name): trial.validated for trial in reversed(plan.trials)}
    words = re.split(r" (?=\S+=)", side)
    for length in range(len(words), 0, -1):
        if config := groups.get(" ".join(words[:length])):
            break
    else:
        raise UserError(
            f"{side!r}: {plan.study.name} has no such setting: {did_you_mean(side, groups)}it has "
            f"{some_of([*map(repr, groups)][::-1], 12)}. Choose one; KEY=VALUE changes it."
        )
    [values, *others] = combinations(parse_settings(words[length:]))
    if others or "seed" in values:
        raise UserError(f"{side!r}: a side has one value per key, and no seed. Correct it.")
    [config] = apply_settings([config], values)
    names = (
        name
        for name, other in groups.items()
        if other.model_copy(update={"seed": config.seed}) == config
    )
    return next(names, side), config
