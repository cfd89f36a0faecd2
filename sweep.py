"""The entry: `python sweep.py gss_grid`, or `sweep gss_grid` where the package is installed."""

from __future__ import annotations

import signal
import sys

if __name__ == "__main__" or sys.argv[0].endswith("/sweep"):
    # Until the guard takes them, a moment from now: no signal may end this between two imports.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


def main() -> int:
    """Run the command line in a guarded process; returns the exit status."""
    try:
        from orchestrator.guard import guarded
    except ModuleNotFoundError as error:
        return _without_packages(error)
    return guarded(_command)


def _command() -> int:
    try:
        from orchestrator.command import main as run
    except ModuleNotFoundError as error:
        return _without_packages(error)
    return run()


def _without_packages(error: ModuleNotFoundError) -> int:
    """Say that the environment is missing: this file needs more than Python."""
    print(
        f"error: the package {error.name} is not installed for {sys.executable} (Python "
        f"{sys.version_info.major}.{sys.version_info.minor}; 3.11 or newer is needed): type `make sweep` once, which "
        "installs all packages into .venv, and then `source .venv/bin/activate`",
        file=sys.stderr,
    )
    return 2


if __name__ == "__main__":
    sys.exit(main())
