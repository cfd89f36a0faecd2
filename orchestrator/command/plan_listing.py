"""The trials and costs that `--dry-run` prints, and the command `studies`."""

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

    Estimates = Mapping[str, Estimate]
    """By trial id."""

NOTHING = "\N{EN DASH}"
PAPER = re.compile(r"[A-Z][^,(]*\((AAAI 2021|ICML 2019)\)")
"""With its title, which a table has no room for."""


def studies(form: options.Format = "table") -> None:
    """List the studies, what each reproduces and how many trials it has at paper scale."""
    from orchestrator.plan import default_corpora, make_plan, scale_named
    from search_spaces.catalog import NAMES, load_study

    paper, records = scale_named("paper"), []
    for name in NAMES:
        study = load_study(name)
        counts = [
            f"{make_plan(study, paper, corpus).total}{f' on {corpus}' if study.reads_text else ''}"
            for corpus in default_corpora(study, paper)
        ]
        record = {
            "study": name,
            "trials": ", ".join(counts),
            "question": study.question,
            "source": study.source,
        }
        if form == "table":  # three columns fit a terminal of 80
            source = PAPER.sub(r"\1", record.pop("source"))
            record["question"] += f" [{source}]" if source else ""
            record["trials"] = record["trials"].replace(", ", "\n")
        records.append(record)
    headings = {name: name for name in records[0]} | {"trials": "paper scale"}
    print_records(records, headings, form)


def print_plans(plans: Sequence[Plan], form: str, *, on_gpu: bool) -> None:
    """Print the different trials of plans: in json one object a trial with its full config; as a
    table, with totals, in hours of a GPU too if some trials run on one. The table of several
    studies has a line a study."""
    from orchestrator.forecast import BASIS, CORE_BASIS, estimate, stages

    estimates = {
        trial.trial_id: estimate(trial.config, plan.corpus)
        for plan in plans
        for trial in plan.trials
    }
    if form != "table":
        records = _records(plans, estimates)
        print_records(
            records, [key for key in records[0] if key not in ("config", "estimate_basis")], form
        )
        for plan in plans:
            if plan.total > len(plan.trials):
                later = "; ".join(stage.sentence for stage in stages(plan))
                listed = f"{len(plan.trials)} of {plan.total} trials can be listed before results"
                print_err(f"{listed}: {later}.")
        return
    several = len({plan.study.name for plan in plans}) > 1
    rows = (_study_rows if several else _trial_rows)(plans, estimates, on_gpu=on_gpu)
    print_records(rows, list(rows[0]), "table")
    for plan in plans:
        name = f"{plan.study.name}, " if several else ""
        for stage in stages(plan):
            print_out(f"{name}{stage.sentence}; up to {_times([stage], on_gpu=on_gpu)}.")
        if not several:
            seeds = f", {plan.seeds} seeds of each setting" if plan.seeds > 1 else ""
            heading = f"{plan.study.name}, scale {plan.scale.name}{on_corpus(plan.corpus.name)}"
            print_out(_total(f"{heading}{seeds}", [plan], estimates, on_gpu=on_gpu))
    if several:
        print_out(
            f"Scale {plans[0].scale.name}; the trials of one study are listed by: {PROGRAM} STUDY "
            f"--dry-run"
        )
    if len(plans) > 1:
        print_out(_total("All together", plans, estimates, on_gpu=on_gpu))
    print_out(BASIS if on_gpu else CORE_BASIS)


def _records(plans: Sequence[Plan], estimates: Estimates) -> list[dict[str, Any]]:
    """Return one record a different trial; a trial of several studies names all of them."""
    from orchestrator.forecast import BASIS
    from trainables.config import WordPairsConfig

    studies: dict[str, dict[str, None]] = {}
    for plan in plans:
        for trial in plan.trials:
            studies.setdefault(trial.trial_id, {})[plan.study.name] = None
    first = {trial.trial_id: (plan, trial) for plan in reversed(plans) for trial in plan.trials}
    records = []
    for trial_id, names in studies.items():
        plan, trial = first[trial_id]
        costs = estimates[trial_id]
        on_gpu = not isinstance(trial.config, WordPairsConfig)  # which a GPU does nothing for
        records.append(
            {
                "study": ", ".join(names),
                "scale": plan.scale.name,
                "corpus": plan.corpus.name,
                "name": trial.name,
                "trial_id": trial_id,
                "parameters": trial.parameters or None,
                "estimated_gpu_hours": float(f"{costs.gpu_hours:.6g}") if on_gpu else None,
                "estimated_core_hours": float(f"{costs.core_hours:.6g}"),
                "estimated_memory_gb": round(costs.memory_gb, 2),
                "estimated_gpu_memory_gb": round(costs.gpu_memory_gb, 2) if on_gpu else None,
                "estimate_basis": BASIS,
                "config": trial.config.model_dump(mode="json"),
            }
        )
    return records


def _trial_rows(
    plans: Sequence[Plan], estimates: Estimates, *, on_gpu: bool
) -> list[dict[str, str]]:
    from trainables.parameters import in_millions

    rows = []
    for record in _records(plans, estimates):
        parameters, costs = record["parameters"], estimates[record["trial_id"]]
        without_gpu = record["estimated_gpu_hours"] is None
        cost = {
            "GPU h": NOTHING if without_gpu else _hours(costs.gpu_hours),
            "GPU GB": NOTHING if without_gpu else f"{costs.gpu_memory_gb:.1f}",
        }
        if not on_gpu:
            cost = {
                "core time": duration(3600 * costs.core_hours),
                "memory": f"{costs.memory_gb:.1f} GB",
            }
        rows.append(
            {
                **({"corpus": record["corpus"]} if len(plans) > 1 else {}),
                "trial": record["name"],
                "id": short_id(record["trial_id"]),
                "params": NOTHING if parameters is None else in_millions(parameters) + "M",
                **cost,
            }
        )
    return rows


def _study_rows(
    plans: Sequence[Plan], estimates: Estimates, *, on_gpu: bool
) -> list[dict[str, str]]:
    """Return a row a study and corpus."""
    rows = []
    for plan in plans:
        parts = _parts([plan], estimates)
        trials = f"{plan.total:,}"
        if plan.seeds > 1:
            # Beside GPU-hours, 80 columns have no room for words.
            short = f"{plan.total // plan.seeds:,} x {plan.seeds}"
            trials = short if on_gpu else f"{trials} ({plan.seeds} seeds)"
        rows.append(
            {
                "study": plan.study.name,
                "corpus": plan.corpus.name,
                "trials": trials,
                **({"GPU h": _hours(sum(part.gpu_hours for part in parts))} if on_gpu else {}),
                "core time": duration(3600 * sum(part.core_hours for part in parts)),
                "memory": f"{_memory_gb([plan], estimates):.1f} GB",
            }
        )
    return rows


def _total(heading: str, plans: Sequence[Plan], estimates: Estimates, *, on_gpu: bool) -> str:
    """Return the sentence of the costs of the different trials of plans; of tuned ones, with those
    that are not named yet."""
    certain = {trial.trial_id for plan in plans if not plan.tuning for trial in plan.trials}
    count = len(certain) + sum(plan.total for plan in plans if plan.tuning)
    noun = "trial" if len(plans) == 1 else "different trial"
    times = _times(_parts(plans, estimates), on_gpu=on_gpu)
    return (
        f"{heading}: {counted(count, noun)}, estimated {times} with "
        f"{_memory_gb(plans, estimates):.1f} GB."
    )


def _parts(plans: Sequence[Plan], estimates: Estimates) -> list[Stage | Estimate]:
    """Return the stages of tuned plans, and the different trials of the others."""
    from orchestrator.forecast import stages

    certain = {trial.trial_id for plan in plans if not plan.tuning for trial in plan.trials}
    return [*(estimates[i] for i in certain), *(stage for plan in plans for stage in stages(plan))]


def _memory_gb(plans: Sequence[Plan], estimates: Estimates) -> float:
    return max(estimates[trial.trial_id].memory_gb for plan in plans for trial in plan.trials)


def _times(parts: Sequence[Stage | Estimate], *, on_gpu: bool) -> str:
    cores = f"{duration(3600 * sum(part.core_hours for part in parts))} of one core"
    if not on_gpu:
        return cores
    return f"{_hours(sum(part.gpu_hours for part in parts))} GPU-hours, or {cores}"


def _hours(hours: float) -> str:
    if hours < 0.001:
        return "< 0.001"
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"
