"""What `--dry-run` prints: the different trials of plans, and what they will take."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from orchestrator.command.records import print_records
from orchestrator.plan import CORE_BASIS, MEMORY_BASIS, V100_BASIS, outlook
from orchestrator.words import counted, duration, on_corpus
from trainables.config import WordPairsConfig
from trainables.parameters import in_millions

if TYPE_CHECKING:
    from orchestrator.plan import Estimate, Plan, StageOutlook, TrialPlan


def print_plans(plans: Sequence[Plan], form: str, console: Console, *, measured: Sequence[str]) -> None:
    """The different trials of plans: in json one object a trial with its full config; as a table, with totals.

    `measured` are sentences about times known from trials that are done.
    """
    records = _plan_records(plans)
    if form != "table":
        columns = {key: key for key in records[0] if key not in ("config", "estimate_basis")}
        print_records(records, columns, form)
        _note_unnamed(plans)
        return
    _print_trials(records)
    for plan in plans:
        for stage in outlook(plan):
            console.print(f"{stage}; up to {_hours(stage.gpu_hours)} GPU-hours.", soft_wrap=True)
        heading = f"{plan.study.name}, scale {plan.scale.name}{on_corpus(plan.corpus.name)}"
        console.print(_total(heading, [plan], "trial"), soft_wrap=True)
    if len(plans) > 1:
        console.print(_total("All together", plans, "different trial"), soft_wrap=True)
    for sentence in measured:
        console.print(sentence, soft_wrap=True)
    console.print(f"GPU-hours: {V100_BASIS}. Core: {CORE_BASIS}. Memory: {MEMORY_BASIS}.", soft_wrap=True)


def _note_unnamed(plans: Sequence[Plan]) -> None:
    """Say on standard error how many trials only results will name."""
    for plan in plans:
        if plan.total > len(plan.trials):
            later = "; ".join(str(stage) for stage in outlook(plan))
            print(f"{len(plan.trials)} of {plan.total} trials can be listed before results: {later}.", file=sys.stderr)


def _plan_records(plans: Sequence[Plan]) -> list[dict[str, Any]]:
    """One record a different trial; a trial of several studies names all of them."""
    studies: dict[str, dict[str, None]] = {}
    for plan in plans:
        for trial in plan.trials:
            studies.setdefault(trial.trial_id, {})[plan.study.name] = None
    union = {trial.trial_id: (plan, trial) for plan in reversed(plans) for trial in plan.trials}
    return [
        {
            "study": ", ".join(studies[trial_id]),
            "scale": plan.scale.name,
            "corpus": plan.corpus.name,
            "name": trial.name,
            "trial_id": trial_id,
            # Nothing where there is nothing to be said: a trial that fits no numbers, or that a GPU is nothing to.
            "parameters": trial.parameters or None,
            "estimated_gpu_hours": float(f"{trial.estimate.gpu_hours:.6g}") if _on_gpu(trial) else None,
            "estimated_core_hours": float(f"{trial.estimate.core_hours:.6g}"),
            "estimated_memory_gb": round(trial.estimate.memory_gb, 2),
            "estimated_gpu_memory_gb": round(trial.estimate.gpu_memory_gb, 2) if _on_gpu(trial) else None,
            "estimate_basis": f"GPU: {V100_BASIS}. Core: {CORE_BASIS}. Memory: {MEMORY_BASIS}.",
            "config": trial.config.model_dump(mode="json"),
        }
        for trial_id, (plan, trial) in ((trial_id, union[trial_id]) for trial_id in studies)
    ]


def _print_trials(records: Sequence[Mapping[str, Any]]) -> None:
    shown = [
        {
            **record,
            "study": _first_of(record["study"]),
            "id": record["trial_id"][:12],
            "millions": _shown(record["parameters"], lambda count: in_millions(count) + "M"),
            "hours": _shown(record["estimated_gpu_hours"], _hours),
            "memory": _shown(record["estimated_gpu_memory_gb"], lambda size: f"{size:.1f} GB"),
        }
        for record in records
    ]
    headings = {
        "corpus": "corpus",
        "name": "trial",
        "id": "id",
        "millions": "parameters",
        "hours": "GPU-hours",
        "memory": "GPU memory",
    }
    several = {"study": "study"} if len({record["study"] for record in records}) > 1 else {}
    print_records(shown, {**several, **headings}, "table")


def _on_gpu(trial: TrialPlan) -> bool:
    """Whether a GPU computes anything of it."""
    return not isinstance(trial.config, WordPairsConfig)


def _shown(value: Any, form: Callable[[Any], str]) -> str:
    return "\N{EN DASH}" if value is None else form(value)


def _first_of(studies: str) -> str:
    first, *others = studies.split(", ")
    return f"{first} +{len(others)}" if others else first


def _total(heading: str, plans: Sequence[Plan], noun: str) -> str:
    """What the different trials of plans come to; of tuned ones, with those that are not named yet."""
    different = {trial.trial_id: trial.estimate for plan in plans if not plan.tuning for trial in plan.trials}
    stages = [stage for plan in plans for stage in outlook(plan)]
    estimates: list[StageOutlook | Estimate] = [*different.values(), *stages]
    count = len(different) + sum(plan.total for plan in plans if plan.tuning)
    memory_gb = max(trial.estimate.memory_gb for plan in plans for trial in plan.trials)
    cores = duration(3600 * sum(each.core_hours for each in estimates))
    return (
        f"{heading}: {counted(count, noun)}, estimated {_hours(sum(each.gpu_hours for each in estimates))} GPU-hours, "
        f"or {cores} of one core with {memory_gb:.1f} GB."
    )


def _hours(hours: float) -> str:
    if hours < 0.001:
        return "< 0.001"
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"
