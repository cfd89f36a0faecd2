from __future__ import annotations

import os
from typing import Any

from orchestrator.worker.beats import Beat
from orchestrator.worker.memory import MachineMemory
from trainables.pulse import TRAINING


def beat_of(machine: str, **changes: Any) -> Beat:
    fields: dict[str, Any] = {
        "number": 1,
        "trial_id": "one",
        "phase": TRAINING,
        "epoch": 3,
        "step": 9,
        "progress": 1,
        "quiet_s": 0.0,
        "line": "my_layer.py, line 3",
        "memory_bytes": 31 * 10**9,
        "machine_memory": MachineMemory(),
        "machine": machine,
        "pid": os.getpid(),
    }
    return Beat(**fields | changes)
