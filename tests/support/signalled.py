"""SIGINT, SIGTERM and SIGHUP at a random moment of a real sweep, to the command, to its group, as
Slurm sends them and twice: a round of it, and what became of it."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import signal
import time
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.support.disturbed import SEED, Undisturbed
from tests.support.typed_sweep import Typed, TypedSweep

STATUSES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
ANSWER = re.compile(r"Stopping|Interrupted|Ended at once|did not stop")
ANSWERED_S, OUT_S, AT_ONCE_S = 1.0, 10.0, 1.0
SLURM_KILLS_S = 30.0
SECOND_S = {signal.SIGINT: 0.3, signal.SIGTERM: 1.1, signal.SIGHUP: 1.1}
"""From the first signal to the second; what comes sooner is the same wish."""
LAST_LINE = "All reports:"


class Kind(NamedTuple):
    """What is sent, to whom, and whether the command has a terminal."""

    number: signal.Signals
    to: str
    terminal: bool

    @property
    def name(self) -> str:
        return f"{self.number.name} {self.to}"


COMMAND, GROUP, SCANCEL, TWICE = (
    "to the command",
    "to its group",
    "to all, as scancel does",
    "to its group, twice",
)
KINDS = [
    Kind(number, to, terminal)
    for number, to, terminal in itertools.product(
        STATUSES, (COMMAND, GROUP, SCANCEL, TWICE), (True, False)
    )
    if to != SCANCEL or number == signal.SIGTERM
]


def send(kind: Kind, sweep: TypedSweep, typed: Typed) -> bool:
    """The signal, to whom it goes; whether there was still something to be ended by the second
    one."""
    with contextlib.suppress(ProcessLookupError):
        if kind.to == COMMAND:
            os.kill(typed.pid, kind.number)
        elif kind.to == SCANCEL:
            for process in sweep.watch.living():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, kind.number)
        else:
            os.killpg(typed.pid, kind.number)
            if kind.to == TWICE and typed.status(SECOND_S[kind.number]) is None:
                os.killpg(typed.pid, kind.number)
                return True
    return False


@dataclass
class Answer:
    """What a command did with a signal."""

    kind: str
    terminal: bool
    moment_s: float
    answered_s: float | None = None
    out_s: float | None = None
    status: int | None = None
    slowness: float = 1.0
    at_once: bool = False
    """It was ended by a second signal."""
    troubles: list[str] = field(default_factory=list)


def signalled(
    sweep: TypedSweep, kind: Kind, undisturbed: Undisturbed, chance: random.Random
) -> Answer:
    """One round, begun anew where the sweep ended before the moment."""
    for _ in range(10):
        typed = sweep.type(terminal=kind.terminal)
        moment_s = chance.uniform(
            0.1 * undisturbed.slowness, undisturbed.seconds
        )  # Python itself starts before
        time.sleep(moment_s)
        if typed.runs():
            answer = Answer(kind.name, kind.terminal, moment_s, slowness=undisturbed.slowness)
            _judge(answer, kind, sweep, typed)
            answer.troubles += sweep.type().troubles(undisturbed.limit_s)
            answer.troubles += sweep.troubles(undisturbed.table, undisturbed.limit_s)
            return answer
        assert typed.troubles(undisturbed.limit_s) == []
        sweep.forget()
    raise AssertionError(f"no sweep lasted until its moment, seed {SEED}")


def _judge(answer: Answer, kind: Kind, sweep: TypedSweep, typed: Typed) -> None:
    """Send it, and see what comes back and when."""
    before, sent_s, slowness = len(typed.text), time.monotonic(), answer.slowness
    second = send(kind, sweep, typed)
    second_s = time.monotonic()
    answer.status = typed.status(SLURM_KILLS_S * slowness)
    answer.out_s = time.monotonic() - sent_s
    reply = typed.text[before:]
    answer.answered_s = next(
        (s - sent_s for s, text in typed.texts if s >= sent_s and ANSWER.search(text)), None
    )
    was_over = LAST_LINE in typed.text[:before]
    deaf = was_over or (kind.terminal and kind.number == signal.SIGHUP)  # its terminal is gone
    answer.at_once = "Ended at once" in reply
    limit_s = second_s - sent_s + AT_ONCE_S * slowness if second else OUT_S * slowness
    troubles = {
        "not out in time": answer.status is None or answer.out_s > limit_s,
        f"status {answer.status}": answer.status != STATUSES[kind.number]
        and not (was_over and answer.status == 0),
        "not answered in time": not deaf and (answer.answered_s or 1e9) > ANSWERED_S * slowness,
        "traceback": "Traceback" in reply,
        "left running": bool(sweep.running()),
    }
    answer.troubles = [
        f"{trouble}: {reply[-500:]!r}" for trouble, is_so in troubles.items() if is_so
    ]
    sweep.kill_all()
