"""The two sides of a comparison: the trials of one group each, with common seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from orchestrator.plan.request import PlanRequest
from orchestrator.plan.seeds import random_seeds
from orchestrator.plan.study_plan import Plan, make_plan
from orchestrator.store import PlannedTrial
from orchestrator.variants import parse_settings
from orchestrator.words import listed
from search_spaces.scales import Scale
from search_spaces.study import Study, group_of
from trainables.errors import UserError, did_you_mean


def side_plan(
    text: str, study: Study, scale: Scale, corpus: str, request: PlanRequest, seeds: int
) -> Plan:
    """Return the plan of a side: a group's trials with the given number of random seeds.

    `text` is a group's name, and settings that only this side has: "softmax training.epochs=3".
    Raises UserError if the study has no such group, or cannot be compared.
    """
    if study.tuning is not None:
        raise UserError(
            f"compare: {study.name} chooses its trials by their results. Compare settings of "
            "another study."
        )
    plan = make_plan(study, scale, corpus, request)
    groups = _groups(plan)
    words = text.split(" ")
    lengths = (length for length in range(len(words), 0, -1) if " ".join(words[:length]) in groups)
    if (length := next(lengths, 0)) == 0:
        raise UserError(
            f"{text!r}: {study.name} has no such setting: {did_you_mean(text, groups)}it has "
            f"{listed(groups)}. Choose one of them, such as {next(iter(groups))!r}, and add "
            "KEY=VALUE to change it."
        )
    trial = groups[group := " ".join(words[:length])]
    if settings := parse_settings(words[length:]):
        position = plan.trials.index(trial)
        plan = make_plan(
            study, scale, corpus, replace(request, settings={**request.settings, **settings})
        )
        # The settings may change the group's name, but not the order of trials.
        trial = _groups(plan).get(group) or plan.trials[position]
    name, config = group_of(trial.name), trial.validated
    trials = [
        PlannedTrial.of(config.model_copy(update={"seed": seed}), f"{name} seed={seed}")
        for seed in random_seeds(config)[:seeds]
    ]
    return replace(plan, trials=tuple(trials), seeds=seeds)


def _groups(plan: Plan) -> Mapping[str, PlannedTrial]:
    groups = dict[str, PlannedTrial]()
    for trial in plan.trials:
        groups.setdefault(group_of(trial.name), trial)
    return groups
