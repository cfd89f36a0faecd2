"""Runs a program as a trial."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from trainables.config import Command, Goal
from trainables.runtime import Runtime
from trainables.trial import run_trial
from trainables.trial_folder import TrialOutcome


def run(
    folder: Path, program: str, *, language: str = sys.executable, **options: Any
) -> TrialOutcome:
    config = Command([language, "-c", program.replace("{", "{{").replace("}", "}}")])
    runtime = Runtime(goal=Goal("loss", "min", ""))
    return run_trial(config, directory=folder, runtime=runtime, **options)


def metrics(outcome: TrialOutcome) -> Any:
    return outcome.measurements["user@1"]


def shell(folder: Path, program: str) -> TrialOutcome:
    return run(folder, program, language="sh")
