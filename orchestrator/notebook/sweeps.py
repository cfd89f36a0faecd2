"""A sweep from Python."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from orchestrator.notebook.frames import results
from trainables.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

BAD_INPUT = 2


def run(study: str, **options: Any) -> pd.DataFrame:
    """Run what is missing of a study and give its results: `run("gss_grid", scale="smoke", max_concurrent=1)`.

    `options` are those of `sweep.py run` with underscores; a list repeats one (`corpus=["ptb", "wikitext-2"]`),
    `settings={"training.epochs": 3}` is `--set`, and True sets a switch. The sweep runs in a process of its own, whose
    lines are printed as they come; interrupting the cell stops it as Ctrl-C does, and the same call goes on. Trials
    that failed have their cause in the frame. Raises UserError for what the command refuses, and where it was
    interrupted.
    """
    words = ["run", study, *_words(options)]
    # A session of its own, since Ctrl-C in a terminal would reach both.
    process = subprocess.Popen(
        [sys.executable, "-m", "sweep", *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
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
    if status >= BAD_INPUT:
        raise UserError(line.strip().removeprefix("error: ") or f"the sweep ended with status {status}")
    which: dict[str, Any] = {
        "scale": "quick",
        **{name: options[name] for name in ("scale", "storage", "store") if name in options},
    }
    return results(study, **which, overrides=options.get("settings", {}))


def _words(options: dict[str, Any]) -> list[str]:
    """The options as they are typed."""
    from orchestrator.plan import overrides_json

    words = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if name == "settings":
            words += [f"--set={key}={overrides_json(setting)}" for key, setting in value.items()]
        elif value is True:
            words.append(option)
        elif value is not None and value is not False:
            words += [f"{option}={one}" for one in (value if isinstance(value, list | tuple) else (value,))]
    return words
