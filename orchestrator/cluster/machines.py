"""The machines of a cluster, asked whether a sweep's trials could run on them at all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError

from orchestrator.cluster.preflight import check_torch_gpu, look, question
from orchestrator.cluster.resources import slots_of
from orchestrator.cluster.run_options import RunOptions
from trainables.config import AnyConfig
from trainables.corpora import CorpusIdentity
from trainables.errors import UserError, last_line

ANSWER_S = 300.0
"""A machine that has to fetch a corpus may take minutes to answer."""


def nodes() -> list[dict[str, Any]]:
    """Every live machine of the cluster, as Ray describes it."""
    machines: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [machine for machine in machines if machine["Alive"]]


def machine_resources(machines: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """What each of them has, by Ray's id: "CPU", "GPU", "memory" in bytes and others that Ray counts."""
    return {machine["NodeID"]: machine["Resources"] for machine in machines}


def address_of(machine: dict[str, Any]) -> str:
    """Of a machine as `nodes` gives it."""
    return str(machine["NodeManagerAddress"])


@contextmanager
def marked(options: RunOptions) -> Iterator[str]:
    """The name of something that lies in the storage for so long, by which machines know it; "" where none is asked."""
    if options.address is None:
        yield ""
        return
    with options.storage.marked() as marker:
        yield marker


class UnfitMachineError(Exception):
    """No pack must run on this machine: Ray's id of it, and why."""

    def __init__(self, machine: str, why: str) -> None:
        super().__init__(machine, why)
        self.machine, self.why = machine, why


@dataclass(frozen=True)
class LateMachines:
    """Machines that join a cluster while the sweep runs: each looks at itself before it takes up a pack."""

    question: str
    """What the others looked for before any trial started, as JSON."""
    others: frozenset[str]
    """By Ray's ids."""

    def refuse_unfit(self) -> None:
        """In a worker: raise UnfitMachineError on a machine that joined and cannot run the trials."""
        machine = ray.get_runtime_context().get_node_id()
        if machine in self.others:
            return
        faults = _faults_here(self.question, machine)
        if faults:
            raise UnfitMachineError(machine, " ".join(faults))


@cache
def _faults_here(question: str, machine: str) -> list[str]:
    (node,) = (node for node in nodes() if node["NodeID"] == machine)
    return look(question, address_of(node), _gpus_of(node))


@dataclass(frozen=True, kw_only=True)
class Checked:
    """Machines on which trials can run."""

    slots: int
    """So many packs fit on them at a time."""
    resources: Mapping[str, Mapping[str, float]]
    """See `machine_resources`."""
    late: LateMachines | None
    """Of a cluster that others may join."""


def check_machines(
    options: RunOptions,
    marker: str,
    configs: Sequence[AnyConfig],
    given_up: Callable[[], bool],
    *,
    corpus: CorpusIdentity | None = None,
    measurements: Sequence[str] = (),
) -> Checked:
    """The machines of the cluster, after a look at them; `marker` lies in their storage, see `marked`.

    Raises UserError, a sentence for each fault, where one could not run the trials, and where they ask for more than
    there is. Of a Ray that this program started on this machine, only its resources and GPUs are in question. Waiting
    for an answer ends early where `given_up` says so.
    """
    machines = nodes()
    resources = machine_resources(machines)
    slots = slots_of(list(resources.values()), options)
    late = None
    if options.address is not None:
        text = question(options, marker, configs, corpus=corpus, measurements=measurements).model_dump_json()
        faults = _ask(text, machines, given_up)
        if faults:
            raise UserError("\n".join(faults))
        late = LateMachines(text, frozenset(resources))
    elif options.gpus_per_trial:
        check_torch_gpu()
    return Checked(slots=slots, resources=resources, late=late)


def _ask(question: str, machines: Sequence[dict[str, Any]], given_up: Callable[[], bool]) -> list[str]:
    """What is amiss with the machines, in sentences; nothing where waiting was given up."""
    task = ray.remote(num_cpus=0, max_retries=0)(look)
    answers = {
        address_of(machine): task.options(resources={f"node:{address_of(machine)}": 0.001}).remote(
            question, address_of(machine), _gpus_of(machine)
        )
        for machine in machines
    }
    deadline_s = time.monotonic() + ANSWER_S
    while ray.wait(list(answers.values()), num_returns=len(answers), timeout=1.0)[1]:
        if given_up():
            return []
        if time.monotonic() > deadline_s:
            break
    return [fault for address, answer in answers.items() for fault in _answer(address, answer)]


def _answer(address: str, answer: Any) -> list[str]:
    try:
        faults: list[str] = ray.get(answer, timeout=0.1)
        return faults
    except GetTimeoutError:
        why = f"no answer within {ANSWER_S:g} s"
    except RayError as error:
        why = last_line(error)
    return [
        f"The machine {address} cannot run this project ({why}): install it there as it is here, and start Ray with "
        "that Python."
    ]


def _gpus_of(machine: dict[str, Any]) -> float:
    return float(machine["Resources"].get("GPU", 0.0))
