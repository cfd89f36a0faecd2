"""Sweeps from Python."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from orchestrator.command import open_existing
from orchestrator.notebook.frames import plain_settings, results_of, study_argument
from orchestrator.plan import PlanRequest, studies_of
from orchestrator.store import StudyKey
from orchestrator.variants import as_typed, read_inputs
from trainables.corpora import corpus_name
from trainables.errors import UserError

ENDED = (0, 1)
"""Exit statuses of a finished sweep, without and with failed trials."""


def run(study: str, **options: Any) -> pd.DataFrame:
    """Run a study's missing trials and return its results: `run("gss_grid", scale="smoke")`.

    `options` are those of `sweep.py run`, with underscores. A list repeats an option
    (`corpus=["ptb", "wikitext-2"]`), and True sets a switch. `settings={"training.epochs": 3}` is
    `--set`; a list trains with each of its values.

    The sweep runs in its own process, whose output is printed. Interrupting the notebook cell stops
    the sweep like Ctrl-C, and the same call resumes it. The result has the causes of failed trials.
    Raises UserError if the command fails or was interrupted.
    """
    study = study_argument(study)
    words = ["run", study, *_words(options)]
    # A new session: Ctrl-C in a terminal would otherwise reach both processes.
    process = subprocess.Popen(
        [sys.executable, "-m", "sweep", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        env=_environment(),
    )
    line = ""
    try:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
        status = process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        process.wait()
        raise
    if status not in ENDED:
        raise UserError(
            line.strip().removeprefix("error: ") or f"the sweep ended with status {status}"
        )
    return _results_of(study, options)


def _results_of(study: str, options: Mapping[str, Any]) -> pd.DataFrame:
    contexts, benchmarks = (
        path and Path(path) for path in map(options.get, ("contexts", "benchmarks"))
    )
    request = PlanRequest(
        settings=plain_settings(options.get("settings") or {}),
        inputs=read_inputs(contexts, benchmarks),
        search=options.get("search"),
        model=options.get("model"),
    )
    corpora = options.get("corpus")
    names = [corpora] if isinstance(corpora, str | os.PathLike) else corpora or []
    keys = [
        StudyKey(
            study=chosen_study.name,
            scale=scale.name,
            corpus=corpus_name(corpus),
            overrides=study_request.variant.text,
        )
        for chosen_study, scale, corpus, study_request in studies_of(
            study, options.get("scale"), list(map(os.fspath, names)), request
        )
    ]
    with open_existing(options.get("store"), options.get("storage") or "results") as store:
        return results_of(store, keys)


def _words(options: Mapping[str, Any]) -> list[str]:
    if invalid_options := {"dry_run", "form", "format", "set"} & options.keys():
        raise UserError(
            f"run: has no option {min(invalid_options)}. Omit it; settings={{...}} replaces --set."
        )
    words = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if name == "settings":
            words += [
                f"--set={key}={as_typed(values)}"
                for key, values in plain_settings(value or {}).items()
            ]
        elif value is True:
            words.append(option)
        elif value is not None and value is not False:
            words += [
                f"{option}={one}"
                for one in (value if isinstance(value, list | tuple) else (value,))
            ]
    return words


def _environment() -> dict[str, str]:
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    # A notebook kernel sets these.
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
        variables.pop(name, None)
    return variables
