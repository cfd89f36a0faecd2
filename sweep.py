"""The entry: `python sweep.py gss_grid`, or `sweep gss_grid` where the package is installed."""

from __future__ import annotations

import gc
import os
import signal
import sys

GARBAGE_EVERY = 20_000
"""After so many new objects Python looks for garbage: at its own 700, imports and reports spend
much time on that."""
INSTALL = (
    "type `make sweep` once, which installs all packages into .venv, and then "
    "`source .venv/bin/activate`"
)

TYPED = getattr(sys, "orig_argv", [sys.executable, *sys.argv])
"""Which Python before 3.10 does not keep: it is told apart from a new enough one in `main`."""
IS_SCRIPT = sys.argv[0].endswith("/sweep")
IS_MODULE = TYPED[1:3] == ["-m", "sweep"]
# `make sweep` types .venv/bin/python, whose environment nobody needs to have activated.
PYTHON = "python" if TYPED[0].startswith("/") or "/" not in TYPED[0] else TYPED[0]
# Sentences say what to type next, also those of workers.
os.environ["SWEEP_PROGRAM"] = (
    "sweep" if IS_SCRIPT else f"{PYTHON} -m sweep" if IS_MODULE else f"{PYTHON} sweep.py"
)

if __name__ == "__main__" or IS_SCRIPT:
    # Until the guard takes them, a moment from now: no signal may end this between two imports.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


def main() -> int:
    """Run the command line in a guarded process; returns the exit status."""
    if sys.version_info < (3, 11):  # noqa: UP036 - who starts this file with an older one is told so
        return _refuse("this Python is too old:")
    try:
        if sys.argv[1:2] == ["prove-gpu"]:  # needs fewer packages than the other commands
            from gpu_proof.command import main as prove

            return prove(sys.argv[2:])
        from orchestrator.guard import guarded
    except ModuleNotFoundError as error:
        return _refuse(f"the package {error.name} is not installed for")
    return guarded(_command)


def _command() -> int:
    gc.set_threshold(GARBAGE_EVERY)
    try:
        from orchestrator.command import main as run
    except ModuleNotFoundError as error:
        return _refuse(f"the package {error.name} is not installed for")
    return run()


def _refuse(problem: str) -> int:
    version = ".".join(map(str, sys.version_info[:2]))
    print(
        f"error: {problem} {sys.executable} (Python {version}; 3.11 or newer is needed): {INSTALL}",
        file=sys.stderr,
    )
    return 2


if __name__ == "__main__":
    sys.exit(main())
