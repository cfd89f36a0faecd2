"""The entry: `python sweep.py gss_grid`."""

from __future__ import annotations

import sys

from orchestrator.command import main

if __name__ == "__main__":
    sys.exit(main())
