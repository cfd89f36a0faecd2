"""What is planned: the trials that `--dry-run` prints, what they will take, and the command
`studies`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.command import options
from orchestrator.command.options import print_err, print_out, print_records
from orchestrator.words import counted, duration, on_corpus, short_id
from trainables.errors import PROGRAM

if TYPE_CHECKING:
    from orchestrator.forecast import Estimate, Stage
    from orchestrator.plan import Plan

NOTHING = "\N{EN DASH}"
PAPER = re.compile(r"[A-Z][^,(]*\((AAAI 2021|ICML 2019)\)")
"""With its title, which a table has no room for."""


def studies(form: options.Format = "table") -> None:
    """List the studies, what each reproduces and how many trials it has at paper scale."""
    from orchestrator.plan import default_corpora, make_plan, scale_named
    from search_spaces.catalog import NAMES, load_study

    records = []
    for name in NAMES:
        study = load_study(name)
        paper = scale_named("paper")
        counts = [
            f"{make_plan(study, paper, corpus).total}{f' on {corpus}' if study.reads_text else ''}"
            for corpus in default_corpora(study, paper)
        ]
        records.append(
            {
                "study": name,
                "trials": ", ".join(counts),
                "question": study.question,
                "source": study.source,
            }
        )
    headings = {
        "study": "study",
        "trials": "paper scale",
        "question": "question",
        "source": "source",
    }
    if form == "table":
        # Three columns fit a terminal of 80.
        del headings["source"]
        for record in records:
            source = PAPER.sub(r"\1", record["source"])
            record["question"] += f" [{source}]" if source else ""
            record["trials"] = record["trials"].replace(", ", "\n")
    print_records(records, headings, form)


def print_plans(
    plans: Sequence[Plan], form: str, *, gpus: Sequence[float], measured: Sequence[str]
) -> None:
    """The different trials of plans: in json one object a trial with its full config; as a table,
    with totals, and hours of a GPU where some trials are to run on one. The table of several
    studies has a line a study.

    `gpus` is what a trial of each plan gets, `measured` are sentences about times known from trials
    that are done."""
    from orchestrator.forecast import BASIS, CORE_BASIS, stages

    on_gpu, estimates = any(gpus), _estimates(plans)
    records = _plan_records(plans, estimates)
    if form != "table":
        print_records(
            records, [key for key in records[0] if key not in ("config", "estimate_basis")], form
        )
        for plan in plans:
            if plan.total > len(plan.trials):
                later = "; ".join(stage.sentence for stage in stages(plan))
                listed = f"{len(plan.trials)} of {plan.total} trials can be listed before results"
                print_err(f"{listed}: {later}.")
        return
    if len({plan.study.name for plan in plans}) > 1:
        lines = _print_studies(plans, estimates, on_gpu=on_gpu)
    else:
        _print_trials(records, on_gpu=on_gpu)
        lines = [
            line
            for plan in plans
            for line in (
                *_stages(plan, on_gpu=on_gpu),
                _study_total(plan, estimates, on_gpu=on_gpu),
            )
        ]
    if len(plans) > 1:
        lines.append(_total("All together", plans, estimates, "different trial", on_gpu=on_gpu))
    for line in (*lines, *measured, BASIS if on_gpu else CORE_BASIS):
        print_out(line)


def _estimates(plans: Sequence[Plan]) -> dict[str, Estimate]:
    """By trial id."""
    from orchestrator.forecast import estimate

    return {
        trial.trial_id: estimate(trial.config, plan.corpus)
        for plan in plans
        for trial in plan.trials
    }


def _plan_records(plans: Sequence[Plan], estimates: Mapping[str, Estimate]) -> list[dict[str, Any]]:
    """One record a different trial; a trial of several studies names all of them."""
    from orchestrator.forecast import BASIS
    from trainables.config import WordPairsConfig

    studies: dict[str, dict[str, None]] = {}
    for plan in plans:
        for trial in plan.trials:
            studies.setdefault(trial.trial_id, {})[plan.study.name] = None
    records = []
    union = {trial.trial_id: (plan, trial) for plan in reversed(plans) for trial in plan.trials}
    for trial_id, names in studies.items():
        plan, trial = union[trial_id]
        estimate = estimates[trial_id]
        # Nothing where there is nothing to be said: a trial that fits no numbers, or that a GPU is
        # nothing to.
        on_gpu = not isinstance(trial.config, WordPairsConfig)
        records.append(
            {
                "study": ", ".join(names),
                "scale": plan.scale.name,
                "corpus": plan.corpus.name,
                "name": trial.name,
                "trial_id": trial_id,
                "parameters": trial.parameters or None,
                "estimated_gpu_hours": float(f"{estimate.gpu_hours:.6g}") if on_gpu else None,
                "estimated_core_hours": float(f"{estimate.core_hours:.6g}"),
                "estimated_memory_gb": round(estimate.memory_gb, 2),
                "estimated_gpu_memory_gb": round(estimate.gpu_memory_gb, 2) if on_gpu else None,
                "estimate_basis": BASIS,
                "config": trial.config.model_dump(mode="json"),
            }
        )
    return records


def _print_trials(records: Sequence[Mapping[str, Any]], *, on_gpu: bool) -> None:
    from trainables.parameters import in_millions

    rows = []
    for record in records:
        first, *others = record["study"].split(", ")
        parameters = record["parameters"]
        rows.append(
            {
                "study": f"{first} +{len(others)}" if others else first,
                "corpus": record["corpus"],
                "trial": record["name"],
                "id": short_id(record["trial_id"]),
                "params": NOTHING if parameters is None else in_millions(parameters) + "M",
                **(_gpu_cost(record) if on_gpu else _core_cost(record)),
            }
        )
    # What is the same of all of them stands below.
    same = {key for key in ("study", "corpus") if len({record[key] for record in records}) == 1}
    print_records(rows, [key for key in rows[0] if key not in same], "table")


def _gpu_cost(record: Mapping[str, Any]) -> dict[str, str]:
    hours, memory_gb = record["estimated_gpu_hours"], record["estimated_gpu_memory_gb"]
    return {
        "GPU h": NOTHING if hours is None else _hours(hours),
        "GPU GB": NOTHING if memory_gb is None else f"{memory_gb:.1f}",
    }


def _core_cost(record: Mapping[str, Any]) -> dict[str, str]:
    return {
        "core time": duration(3600 * record["estimated_core_hours"]),
        "memory": f"{record['estimated_memory_gb']:.1f} GB",
    }


def _print_studies(
    plans: Sequence[Plan], estimates: Mapping[str, Estimate], *, on_gpu: bool
) -> list[str]:
    """A line a study and corpus; returns what else there is to say of them."""
    from orchestrator.forecast import stages

    rows = []
    for plan in plans:
        # Of a tuned study, its stages: not all of its trials are known yet.
        parts: Sequence[Stage | Estimate] = stages(plan) or [
            estimates[trial.trial_id] for trial in plan.trials
        ]
        # Beside GPU-hours, 80 columns have no room for words.
        seeds = (
            f"{plan.total // plan.seeds:,} x {plan.seeds}"
            if on_gpu
            else f"{plan.total:,} ({plan.seeds} seeds)"
        )
        gpu = {"GPU h": _hours(sum(part.gpu_hours for part in parts))} if on_gpu else {}
        rows.append(
            {
                "study": plan.study.name,
                "corpus": plan.corpus.name,
                "trials": seeds if plan.seeds > 1 else f"{plan.total:,}",
                **gpu,
                "core time": duration(3600 * sum(part.core_hours for part in parts)),
                "memory": f"{max(estimates[trial.trial_id].memory_gb for trial in plan.trials):.1f} GB",
            }
        )
    print_records(rows, list(rows[0]), "table")
    lines = [
        f"{plan.study.name}, {line}" for plan in plans for line in _stages(plan, on_gpu=on_gpu)
    ]
    return [
        *lines,
        f"Scale {plans[0].scale.name}; the trials of one study are listed by: {PROGRAM} STUDY "
        f"--dry-run",
    ]


def _stages(plan: Plan, *, on_gpu: bool) -> list[str]:
    from orchestrator.forecast import stages

    return [f"{stage.sentence}; up to {_times([stage], on_gpu=on_gpu)}." for stage in stages(plan)]


def _study_total(plan: Plan, estimates: Mapping[str, Estimate], *, on_gpu: bool) -> str:
    heading = f"{plan.study.name}, scale {plan.scale.name}{on_corpus(plan.corpus.name)}"
    heading += f", {plan.seeds} seeds of each setting" if plan.seeds > 1 else ""
    return _total(heading, [plan], estimates, "trial", on_gpu=on_gpu)


def _total(
    heading: str,
    plans: Sequence[Plan],
    estimates: Mapping[str, Estimate],
    noun: str,
    *,
    on_gpu: bool,
) -> str:
    """What the different trials of plans come to; of tuned ones, with those that are not named
    yet."""
    from orchestrator.forecast import stages

    different = {
        trial.trial_id: estimates[trial.trial_id]
        for plan in plans
        if not plan.tuning
        for trial in plan.trials
    }
    parts = [stage for plan in plans for stage in stages(plan)]
    count = len(different) + sum(plan.total for plan in plans if plan.tuning)
    memory_gb = max(estimates[trial.trial_id].memory_gb for plan in plans for trial in plan.trials)
    times = _times([*different.values(), *parts], on_gpu=on_gpu)
    return f"{heading}: {counted(count, noun)}, estimated {times} with {memory_gb:.1f} GB."


def _times(parts: Sequence[Stage | Estimate], *, on_gpu: bool) -> str:
    cores = f"{duration(3600 * sum(part.core_hours for part in parts))} of one core"
    return (
        f"{_hours(sum(part.gpu_hours for part in parts))} GPU-hours, or {cores}"
        if on_gpu
        else cores
    )


def _hours(hours: float) -> str:
    if hours < 0.001:
        return "< 0.001"
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"
