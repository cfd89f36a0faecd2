"""The end of a driver that cannot go on with the Ray that it has: the same command goes on with another one."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

START_AGAIN = 75
"""The exit status that asks for it (EX_TEMPFAIL of sysexits.h)."""


def start_again(reason: str) -> NoReturn:
    """Say why, and leave at once: whatever this process has begun is given back when its lease runs out or it is seen
    to be gone."""
    print(reason, file=sys.stderr, flush=True)
    os._exit(START_AGAIN)
