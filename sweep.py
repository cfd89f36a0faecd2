"""Entry point: `python sweep.py gss_grid`, or `sweep gss_grid` if the package is installed."""

from __future__ import annotations

import gc
import os
import signal
import sys

GARBAGE_EVERY = 20_000
"""New objects per garbage collection. Python's default, 700, slows imports and reports."""
INSTALL = (
    "Install everything in the project's folder: type `make sweep`, then `source "
    ".venv/bin/activate`; or `pip install .`"
)

TYPED = getattr(sys, "orig_argv", [sys.executable, *sys.argv])
"""The command line as typed. `main` refuses Python before 3.10, which has no `orig_argv`."""
IS_SCRIPT = sys.argv[0].endswith("/sweep")
IS_MODULE = TYPED[1:3] == ["-m", "sweep"]
# `make sweep` and `uv run` use .venv/bin/python without activating its environment.
PYTHON = "python" if TYPED[0].startswith("/") or "/" not in TYPED[0] else TYPED[0]
PYTHON = "uv run" if "UV_RUN_RECURSION_DEPTH" in os.environ else PYTHON
# Messages name the command to type next, also on workers.
os.environ["SWEEP_PROGRAM"] = (
    "sweep" if IS_SCRIPT else f"{PYTHON} -m sweep" if IS_MODULE else f"{PYTHON} sweep.py"
)

if __name__ == "__main__" or IS_SCRIPT:
    # Block signals until the guard handles them, so that none ends the process between two imports.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


def main() -> int:
    """Run the command line in a guarded process, and return the exit status."""
    if sys.version_info < (3, 11):  # noqa: UP036 - an older Python gets a message
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

        return run()
    except ModuleNotFoundError as error:
        return _refuse(f"the package {error.name} is not installed for")


def _refuse(problem: str) -> int:
    version = ".".join(map(str, sys.version_info[:2]))
    print(
        f"error: {problem} {sys.executable} (Python {version}; needs 3.11 or newer). {INSTALL}",
        file=sys.stderr,
    )
    return 2


if __name__ == "__main__":
    sys.exit(main())
