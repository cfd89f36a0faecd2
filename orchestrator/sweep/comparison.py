"""Compare two settings of a study: train what is missing, then judge pairs of equal seeds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.cluster import RunOptions
from orchestrator.plan import Plan
from orchestrator.sweep.commands import Typed
from orchestrator.sweep.shared_work import INTERRUPTED
from orchestrator.sweep.study_run import run_study
from orchestrator.watch import Listener
from orchestrator.words import is_number, listed
from trainables.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from orchestrator.analysis import Verdict

FIRST_LOOK, GROWTH = 5, 1.5


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Verdict of a comparison."""

    verdict: Verdict
    seeds: int
    """Seeds of each side; those that failed on a side give no pair."""


def compare_sides(
    plan: Plan,
    options: RunOptions,
    typed: Typed,
    console: Console,
    *,
    metric: str,
    margin: float,
    sequential: bool,
    again: bool,
) -> Answer | None:
    """Run the missing trials of both sides, and return the verdict; None if interrupted.

    The plan has a trial of A and one of B for each seed. A sequential comparison starts with five
    seeds and trains further ones only until there is a verdict.
    `again` first runs the failed and diverged trials again.
    """
    from orchestrator.analysis import judge_pairs

    run = partial(run_study, options=options, typed=typed, console=console, events=Listener())
    if again and run(plan, again=True, adds=True) == INTERRUPTED:
        return None
    most = len(plan.trials) // 2
    for seeds in looks(most) if sequential else (most,):
        looked = replace(plan, trials=plan.trials[: 2 * seeds], seeds=seeds)
        if run(looked, adds=True) == INTERRUPTED:
            return None
        verdict = judge_pairs(
            _pairs(looked, options, metric),
            margin=margin,
            lower_is_better=plan.study.goal.sign(metric) > 0,
            sequential=sequential,
        )
        if verdict.verdict not in ("no_difference_shown", "too_few_seeds"):
            break
    return Answer(verdict=verdict, seeds=seeds)


def looks(most: int) -> Iterator[int]:
    """Yield the numbers of seeds after which a sequential comparison looks at its verdict.

    They do not depend on the trials that are done, so the same command gives the same answer.
    """
    seeds = FIRST_LOOK
    while seeds < most:
        yield seeds
        seeds = math.ceil(GROWTH * seeds)
    yield most


def _pairs(plan: Plan, options: RunOptions, metric: str) -> list[tuple[float, float]]:
    """Return the values of a metric at each seed that both sides have done.

    Raises UserError for a metric that no done trial has.
    """
    from orchestrator.analysis import flatten
    from orchestrator.store import open_store

    ids = [trial.trial_id for trial in plan.trials]
    with open_store(options.store_url) as store:
        results = flatten(store.results(plan.key, only=ids))
    names = results.metric_columns
    if names and metric not in names:
        raise UserError(
            f"--metric: the trials have no metric {metric!r}: {did_you_mean(metric, names)}they "
            f"have {listed(names)}. Choose one of them."
        )
    value_by_id = {record["trial_id"]: record.get(metric) for record in results.records}
    values = list(map(value_by_id.get, ids))
    return [
        (a, b)
        for a, b in zip(values[::2], values[1::2], strict=True)
        if is_number(a) and is_number(b)
    ]
