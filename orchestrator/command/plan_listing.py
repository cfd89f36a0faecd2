"""The output of `--dry-run`, and the command `studies`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.command import options
from orchestrator.command.options import print_err, print_out, print_records
from orchestrator.words import counted, duration, on_corpus, short_id

if TYPE_CHECKING:
    from orchestrator.forecast import Estimate
    from orchestrator.plan import Plan

    Estimates = Mapping[str, Estimate]

NOTHING = "\N{EN DASH}"


def studies(form: options.Format = "table") -> None:
    """List the built-in studies.

    Shows the question of each and its number of trials at paper scale. --format csv and json add
    its source.
    """
    from orchestrator.plan import default_corpora, make_plan
    from search_spaces.catalog import NAMES, load_study
    from search_spaces.scales import SCALES

    paper, records = SCALES["paper"], []
    for name in NAMES:
        study = load_study(name)
        counts = {
            corpus: make_plan(study, paper, corpus).total
            for corpus in default_corpora(study, paper)
        }
        texts = (
            f"{count}{f' on {corpus}' if study.reads_text else ''}"
            for corpus, count in counts.items()
        )
        records.append(
            {
                "study": name,
                "trials": counts if form == "json" else ", ".join(texts),
                "question": study.question,
                "source": study.source,
            }
        )
    headings = {"study": "study", "trials": "paper scale", "question": "question"}
    # A table of 80 columns has no room for the sources.
    columns = headings if form == "table" else list(records[0])
    print_records(records, columns, form, "studies", studies=records)


def print_plans(plans: Sequence[Plan], form: options.Form, *, on_gpu: bool) -> None:
    """Print the plans' trials, each once, with estimated costs.

    A table ends with the costs of each plan. For several studies, it has only these costs.
    """
    from orchestrator.forecast import BASIS, CORE_BASIS, estimate, stages

    estimates = {
        trial.trial_id: estimate(trial.validated, plan.corpus)
        for plan in plans
        for trial in plan.trials
    }
    records = _records(plans, estimates)
    if form != "table":
        columns = [name for name in records[0] if name not in ("config", "estimate_basis")]
        totals = [{**vars(plan.key), "trials": plan.total} for plan in plans]
        print_records(records, columns, form, "plan", studies=totals, trials=records)
        for plan in plans:
            if plan.total > len(plan.trials):
                later = "; ".join(stages(plan))
                summary = (
                    f"Listed: the {len(plan.trials)} of {plan.total} trials that need no results"
                )
                print_err(f"{summary}. All stages: {later}.")
        return
    if len({plan.study.name for plan in plans}) == 1:
        rows = _trial_rows(records, on_gpu=on_gpu)
        print_records(rows, list(rows[0]), form, "plan")
    for plan in plans:
        extent = f", {plan.extent}" if plan.extent else ""
        heading = f"{plan.study.name}, scale {plan.scale.name}{on_corpus(plan.corpus.name)}"
        print_out(_total(f"{heading}{extent}", [plan], estimates, on_gpu=on_gpu))
        for sentence, costs in stages(plan).items():
            print_out(f"{sentence}; up to {_times([costs], on_gpu=on_gpu)}.")
    if len(plans) > 1:
        print_out(_total("Total", plans, estimates, on_gpu=on_gpu))
    if any(costs.memory_gb for costs in estimates.values()):
        print_out(BASIS if on_gpu else CORE_BASIS)


def _records(plans: Sequence[Plan], estimates: Estimates) -> list[dict[str, Any]]:
    from orchestrator.forecast import BASIS
    from trainables.config import WordPairsConfig

    pairs = [(plan, trial) for plan in plans for trial in plan.trials]
    records: dict[str, dict[str, Any]] = {}
    for plan, trial in pairs:
        if trial.trial_id in records:
            studies = [*records[trial.trial_id]["study"].split(", "), plan.study.name]
            records[trial.trial_id]["study"] = ", ".join(dict.fromkeys(studies))
            continue
        costs = estimates[trial.trial_id]
        on_gpu = not isinstance(trial.validated, WordPairsConfig)  # these do not use a GPU
        records[trial.trial_id] = {
            "study": plan.study.name,
            "scale": plan.scale.name,
            "corpus": plan.corpus.name,
            "name": trial.name,
            "trial_id": trial.trial_id,
            "parameters": costs.parameters or None,
            "estimated_gpu_hours": float(f"{costs.gpu_hours:.6g}") or None if on_gpu else None,
            "estimated_core_hours": float(f"{costs.core_hours:.6g}") or None,
            "estimated_memory_gb": round(costs.memory_gb, 2) or None,
            "estimated_gpu_memory_gb": round(costs.gpu_memory_gb, 2) or None if on_gpu else None,
            "estimate_basis": BASIS if costs.memory_gb else None,
            "config": trial.config,
        }
    return list(records.values())


def _trial_rows(records: Sequence[Mapping[str, Any]], *, on_gpu: bool) -> list[dict[str, str]]:
    from trainables.parameters import in_millions

    columns: dict[str, tuple[str, Callable[..., str]]] = {
        "corpus": ("corpus", str),
        "trial": ("name", str),
        "id": ("trial_id", short_id),
        "params": ("parameters", lambda count: f"{in_millions(count)}M"),
    }
    columns |= (
        {
            "GPU h": ("estimated_gpu_hours", _hours),
            "GPU GB": ("estimated_gpu_memory_gb", "{:.1f}".format),
        }
        if on_gpu
        else {
            "core time": ("estimated_core_hours", lambda hours: duration(3600 * hours)),
            "memory": ("estimated_memory_gb", "{:.1f} GB".format),
        }
    )
    if len({record["corpus"] for record in records}) == 1:
        del columns["corpus"]
    return [
        {
            heading: NOTHING if record[name] is None else text(record[name])
            for heading, (name, text) in columns.items()
        }
        for record in records
    ]


def _total(heading: str, plans: Sequence[Plan], estimates: Estimates, *, on_gpu: bool) -> str:
    from orchestrator.forecast import stages

    untuned_ids = {trial.trial_id for plan in plans if not plan.tuning for trial in plan.trials}
    count = len(untuned_ids) + sum(plan.total for plan in plans if plan.tuning)
    noun = "trial" if len(plans) == 1 else "different trial"
    memory_gb = max(estimates[trial.trial_id].memory_gb for plan in plans for trial in plan.trials)
    parts = [estimates[trial_id] for trial_id in untuned_ids]
    parts += [stage for plan in plans for stage in stages(plan).values()]
    times = _times(parts, on_gpu=on_gpu)
    costs = f", estimated {times} with up to {memory_gb:.1f} GB each" if memory_gb else ""
    return f"{heading}: {counted(count, noun)}{costs}."


def _times(parts: Sequence[Estimate], *, on_gpu: bool) -> str:
    cores = f"{duration(3600 * sum(part.core_hours for part in parts))} of one core"
    if not on_gpu:
        return cores
    return f"{_hours(sum(part.gpu_hours for part in parts))} GPU-hours, or {cores}"


def _hours(hours: float) -> str:
    if hours < 0.001:
        return "< 0.001"
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"
