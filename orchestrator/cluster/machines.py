"""Machines of a cluster, and their checks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError

from orchestrator.cluster.preflight import Question, find_faults
from orchestrator.guard import beat_on
from trainables.errors import UserError, last_line

ANSWER_S = 300.0
"""Time limit for the checks of all machines. Downloading a corpus can take minutes."""


def nodes() -> list[dict[str, Any]]:
    """Return Ray's descriptions of the live machines."""
    machines: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [machine for machine in machines if machine["Alive"]]


def machine_resources(machines: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return resources such as "CPU", "GPU" and "memory" (bytes), by Ray's node id."""
    return {machine["NodeID"]: machine["Resources"] for machine in machines}


def address_of(machine: dict[str, Any]) -> str:
    """Return a machine's address."""
    return str(machine["NodeManagerAddress"])


class UnfitMachineError(Exception):
    """A machine cannot run the trials. `machine` is its node id in Ray."""

    def __init__(self, machine: str, reason: str) -> None:
        super().__init__(machine, reason)
        self.machine, self.reason = machine, reason


@dataclass(frozen=True)
class LateMachines:
    """Check for machines that join the cluster during a sweep."""

    question: str
    """`Question` as JSON."""
    checked_machines: frozenset[str]

    def refuse_unfit(self) -> None:
        """Raise UnfitMachineError if this machine joined late and cannot run the trials."""
        machine = ray.get_runtime_context().get_node_id()
        if machine in self.checked_machines:
            return
        faults = _faults_here(self.question, machine)
        if faults:
            raise UnfitMachineError(machine, " ".join(faults))


@cache
def _faults_here(question: str, machine: str) -> list[str]:
    (node,) = (node for node in nodes() if node["NodeID"] == machine)
    return find_faults(question, address_of(node), _gpus_of(node))


def check_machines(question: Question, is_stopping: Callable[[], bool]) -> LateMachines:
    """Check every machine; return the check for machines that join later.

    Raises UserError with a sentence per fault. Waiting ends early if `is_stopping` returns True.
    """
    text = question.model_dump_json()
    machines = nodes()
    task = ray.remote(num_cpus=0, max_retries=0)(find_faults)
    answers = {
        address_of(machine): task.options(resources={f"node:{address_of(machine)}": 0.001}).remote(
            text, address_of(machine), _gpus_of(machine)
        )
        for machine in machines
    }
    deadline_s = time.monotonic() + ANSWER_S
    while (
        ray.wait(list(answers.values()), num_returns=len(answers), timeout=1.0)[1]
        and not is_stopping()
    ):
        beat_on()
        if time.monotonic() > deadline_s:
            break
    faults = [fault for address, answer in answers.items() for fault in _answer(address, answer)]
    if faults and not is_stopping():
        raise UserError("\n".join(faults))
    return LateMachines(text, frozenset(machine_resources(machines)))


def _answer(address: str, answer: Any) -> list[str]:
    try:
        faults: list[str] = ray.get(answer, timeout=0.1)
        return faults
    except GetTimeoutError:
        reason = f"no answer within {ANSWER_S:g} s"
    except RayError as error:
        reason = last_line(error)
    return [
        f"The machine {address} cannot run this project ({reason}). Install the project there, "
        "with its packages, and start Ray with the Python that has them."
    ]


def _gpus_of(machine: dict[str, Any]) -> float:
    return float(machine["Resources"].get("GPU", 0.0))
