"""What a run says before it starts and after it ends, and the commands it tells the reader to type."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.display import duration
from orchestrator.plan import Plan
from orchestrator.store.records import TrialState

PASSWORD = re.compile(r"(://[^:/@?]*:|[?&](?:ssl)?password=)[^@&]+")
START_S = 10.0
"""Ray's start and its workers' imports."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where results go and what may be used to get them."""

    storage: Path
    """Absolute."""
    store_url: str
    address: str | None = None
    gpus_per_trial: float = 0.0
    cores_per_trial: int = 1
    max_concurrent: int | None = None
    deterministic: bool = False
    typed: tuple[str, ...] = ()
    """The command line behind `sweep.py` and `run` or `retry`."""

    @property
    def concurrent(self) -> int:
        """How many trials run at a time, as far as that is known before Ray has started."""
        if self.gpus_per_trial:
            return self.max_concurrent or 1
        fitting = max(1, len(os.sched_getaffinity(0)) // self.cores_per_trial)
        return min(self.max_concurrent or fitting, fitting)


def opening(
    plan: Plan, missing: int, states: Mapping[str, TrialState], seconds_each: tuple[float, str], options: RunOptions
) -> str:
    """What will run and for how long. `seconds_each` is the time of a trial and where that is known from."""
    total = len(plan.trials)
    done = sum(state == "done" for state in states.values())
    others = total - done - missing
    troubled = f", {others} not run (without a result so far)" if others else ""
    with_set = f", with {plan.key.overrides}" if plan.key.overrides != "{}" else ""
    lines = [
        f"Study {plan.study.name}: {plan.study.title or plan.study.question}".rstrip(": "),
        f"Scale {plan.scale.name} ({plan.scale.summary}), corpus {plan.corpus.name}{with_set}",
        f"{total} trials: {missing} to run, {done} already done{troubled}.",
    ]
    if missing:
        unit = "GPU" if options.gpus_per_trial else "core"
        units = f"{options.concurrent} {unit}{'s' * (options.concurrent > 1)}"
        whole = duration(START_S + missing * seconds_each[0] / options.concurrent)
        lines.append(
            f"Estimated time: about {whole} on {units} ({duration(seconds_each[0])} a trial and {unit}, "
            f"{seconds_each[1]})."
        )
    command = paper_command(plan.argument, plan.study.corpora or (plan.corpus.name,), plan.scale.name)
    if command is not None:
        lines.append(f"This is not the paper's scale; for that, type: {command}")
    return "\n".join(lines)


def paper_command(argument: str, corpora: Sequence[str], scale: str) -> str | None:
    """What to type for the paper's scale; None where this is it."""
    if scale == "paper":
        return None
    chosen = " ".join(f"--corpus {shlex.quote(corpus)}" for corpus in corpora)
    return f"python sweep.py {shlex.quote(argument)} --scale paper {chosen}"


def retry_command(typed: Sequence[str]) -> str:
    """What to type to run just the failed and diverged trials again: `retry` with everything else as it was typed.

    A password in a store's address is masked: this line may end in a log.
    """
    shown = [PASSWORD.sub(r"\1***", argument) for argument in typed]
    return shlex.join(["python", "sweep.py", "retry", *shown])


def interrupted(done: int, total: int) -> str:
    """The last line of a run that was stopped."""
    return (
        f"Interrupted with {done} of {total} trials done; what was done is kept. Type the same command again to go on."
    )
