"""Explain why workers ended, from their last heartbeats; kill hanging workers."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import psutil

from orchestrator.worker import Beat, Ending, EndingKind, machine_memory


def explain(ending: Ending, beat: Beat | None, trial_id: str | None, here: str) -> Ending:
    """Add to an ending how far trial `trial_id` came and, if memory ran out, the memory used.

    `beat` is the worker's last heartbeat. If it is about an earlier trial, no position is added.
    `here` is the name of this machine in heartbeats.
    """
    if beat is None:
        return ending
    memory = beat.machine_memory
    current_memory = machine_memory() if beat.machine == here else memory
    if ending.kind is EndingKind.PROCESS_DIED and current_memory.ran_out_since(memory):
        ending = replace(ending, kind=EndingKind.OUT_OF_MEMORY)
    text = f"{ending.cause} {beat.position}" if beat.trial_id == trial_id else ending.cause
    if ending.short_of_memory:
        used_gb, total_gb = beat.memory_bytes / 1e9, memory.total_bytes / 1e9
        text += f", using {used_gb:.1f} of its machine's {total_gb:.1f} GB"
    return replace(ending, text=text)


def kill_worker(beat: Beat | None, here: str) -> None:
    """Kill the worker that sent this heartbeat, if it still runs on the machine `here`."""
    if beat is None or beat.machine != here:
        return
    with suppress(psutil.Error):  # it has ended, or belongs to another user
        process = psutil.Process(beat.pid)
        if " ".join(process.cmdline()).startswith("ray::"):
            process.kill()
