"""The entry: `python sweep.py gss_grid`."""

from __future__ import annotations

import signal
import sys

if __name__ == "__main__":
    # Until the guard takes them, a moment from now: no signal may end this between two imports.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))

from orchestrator.guard import guarded


def main() -> int:
    """Run the command line in a guarded process; returns the exit status."""
    from orchestrator.command import main as run

    return run()


if __name__ == "__main__":
    sys.exit(guarded(main))
