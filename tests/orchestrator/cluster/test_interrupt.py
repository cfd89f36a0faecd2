from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from orchestrator.cluster import interruptible

PROGRAM = """
import os, signal, sys
from orchestrator.cluster import interruptible
with interruptible() as interrupt:
    os.kill(os.getpid(), signal.SIGTERM)
    print(interrupt.requested, flush=True)
    os.kill(os.getpid(), signal.SIGINT)
    print("never printed", flush=True)
"""


def test_first_signal_restores_handlers() -> None:
    def raise_keyboard_interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, raise_keyboard_interrupt)
    try:
        with interruptible() as interrupt:
            assert not interrupt.requested
            os.kill(os.getpid(), signal.SIGTERM)
            assert interrupt.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_second_signal_ends_the_process() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.stdout == "True\n"
    assert ended.returncode == -signal.SIGINT
