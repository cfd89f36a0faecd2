"""Text that a command prints before it runs a study."""

from __future__ import annotations

import os

from orchestrator.cluster import RunOptions
from orchestrator.forecast import stages
from orchestrator.plan import Plan
from orchestrator.sweep.commands import Typed, paper_command
from orchestrator.sweep.study_state import StudyState
from orchestrator.variants import Variant
from orchestrator.words import counted, duration, on_corpus

# Time in which Ray starts and its workers import their modules.
START_S = 10.0


def concurrent_trials(options: RunOptions) -> int:
    """Return how many trials will run at a time, estimated before Ray starts."""
    if options.runtime.worker:
        return 1
    if options.gpus_per_trial:
        return options.max_concurrent or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:  # macOS does not restrict a process to some cores
        cores = os.cpu_count() or 1
    core_limit = max(1, cores // options.runtime.threads)
    return min(options.max_concurrent or core_limit, core_limit)


def opening(
    plan: Plan,
    state: StudyState,
    seconds_each: tuple[float, str],
    options: RunOptions,
    typed: Typed,
) -> str:
    """Return a text about the trials that will run, and how long they will take.

    `seconds_each` holds the estimated seconds of one trial, and the basis of the estimate.
    """
    variant = Variant.read(plan.key.overrides)
    names_protocol = plan.study.reads_text and not variant.model
    summary = f" ({plan.scale.summary})" if names_protocol else ""
    lines = [
        f"Study {plan.study.name}: {plan.study.title or plan.study.question}".rstrip(": "),
        f"Scale {plan.scale.name}{summary}{on_corpus(plan.corpus.name)}{variant}",
        *stages(plan),
        _counts(plan, state),
    ]
    if state.missing_count and seconds_each[1]:
        unit, slots = "GPU" if options.gpus_per_trial else "core", concurrent_trials(options)
        seconds, basis = seconds_each
        lines.append(
            f"Estimated time: about {duration(START_S + state.missing_count * seconds / slots)} on "
            f"{counted(slots, unit)} ({duration(seconds)} per trial on one {unit}, {basis}; "
            f"{START_S:.0f} s to start)."
        )
    command = paper_command(typed, plan.study, plan.key)
    if command and not options.runtime.worker:
        lines.append(f"This is not the paper's scale. For the paper's scale, type: {command}")
    return "\n".join(lines)


def _counts(plan: Plan, state: StudyState) -> str:
    done_count, stopped_count = state.count("done"), state.count("pruned")
    other_count = plan.total - done_count - stopped_count - state.missing_count
    extent = f" ({plan.extent})" if plan.extent else ""
    names = ", ".join(dict.fromkeys(name for names in state.unmeasured.values() for name in names))
    parts = [
        f"{counted(plan.total, 'trial')}{extent}: {state.missing_count} to run",
        f"{done_count} already done",
        f"{len(state.unmeasured)} of them to be measured again for: {names}" if names else "",
        f"{state.weightless_count} of them without a measurement, for which no weights are kept"
        if state.weightless_count
        else "",
        f"{stopped_count} stopped early" if stopped_count else "",
        f"{other_count} without a result, which this command does not run" if other_count else "",
    ]
    return f"{', '.join(filter(None, parts))}."
