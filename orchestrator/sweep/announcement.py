"""What a run prints before it starts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from orchestrator.cluster import RunOptions
from orchestrator.forecast import outlook
from orchestrator.plan import Plan, scale_summary
from orchestrator.store import COMPLETE, TrialState
from orchestrator.sweep.commands import Typed, paper_command
from orchestrator.variants import Variant
from orchestrator.words import counted, duration, on_corpus

OTHER_MODELS = "the study with other models than the paper's, as large as those of its own scale"
START_S = 10.0
"""Ray's start and its workers' imports."""


def concurrent_trials(options: RunOptions) -> int:
    """How many trials run at a time, as far as that is known before Ray has started."""
    if options.gpus_per_trial:
        return options.max_concurrent or 1
    fitting = max(1, len(os.sched_getaffinity(0)) // options.runtime.threads)
    return min(options.max_concurrent or fitting, fitting)


def opening(
    plan: Plan,
    missing: int,
    states: Mapping[str, TrialState],
    lacking: Mapping[str, Sequence[str]],
    seconds_each: tuple[float, str],
    options: RunOptions,
    typed: Typed,
) -> str:
    """What will run and for how long. `missing` counts trials that are not chosen yet, too;
    `seconds_each` is the time of a trial and where that is known from; `lacking` has the
    measurements that done trials have not got, by trial id."""
    done, stopped = (sum(state == wanted for state in states.values()) for wanted in COMPLETE)
    others = plan.total - done - stopped - missing
    troubled = f", {stopped} stopped early" if stopped else ""
    troubled += f", {others} not run (without a result so far)" if others else ""
    names = ", ".join(dict.fromkeys(name for each in lacking.values() for name in each))
    later = f", {len(lacking)} of them to be measured again for: {names}" if lacking else ""
    variant = Variant.read(plan.key.overrides)
    changes = f", with {' '.join(variant.typed)}" if variant.typed else ""
    summary = scale_summary(plan.study, plan.scale.name, all_trials=plan.all_trials)
    if plan.scale.name == "paper" and variant.model:
        summary = OTHER_MODELS
    lines = [
        f"Study {plan.study.name}: {plan.study.title or plan.study.question}".rstrip(": "),
        f"Scale {plan.scale.name} ({summary}){on_corpus(plan.corpus.name)}{changes}",
        *(stage.sentence for stage in outlook(plan)),
        f"{counted(plan.total, 'trial')}{_seeds(plan)}: {missing} to run, {done} already "
        f"done{later}{troubled}.",
    ]
    if missing:
        unit, concurrent = "GPU" if options.gpus_per_trial else "core", concurrent_trials(options)
        units = f"{concurrent} {unit}{'s' * (concurrent > 1)}"
        whole = duration(START_S + missing * seconds_each[0] / concurrent)
        lines.append(
            f"Estimated time: about {whole} on {units} ({duration(seconds_each[0])} a trial and "
            f"{unit}, "
            f"{seconds_each[1]}; {START_S:.0f} s to start)."
        )
    if command := paper_command(typed, plan.study, plan.key):
        lines.append(f"This is not the paper's scale; for that, type: {command}")
    return "\n".join(lines)


def _seeds(plan: Plan) -> str:
    return f" ({plan.seeds} seeds of each setting)" if plan.seeds > 1 else ""
