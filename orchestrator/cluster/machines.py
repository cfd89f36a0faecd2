"""The machines of a cluster, asked whether a sweep's trials could run on them at all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ray
from pydantic import ValidationError
from ray.exceptions import GetTimeoutError, RayError

from orchestrator.cluster.machine_faults import check, faults
from orchestrator.cluster.preflight import Findings, Question, look, question
from orchestrator.cluster.resources import per_pack, slots_of
from orchestrator.cluster.run_options import RunOptions
from trainables.config import AnyConfig
from trainables.corpora import CorpusIdentity
from trainables.errors import UserError, last_line

ANSWER_S = 300.0
"""A machine that has to fetch a corpus may take minutes to answer."""


def nodes() -> list[dict[str, Any]]:
    """Every live machine of the cluster, as Ray describes it."""
    known: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [node for node in known if node["Alive"]]


def machine_resources(machines: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """What each of them has, by Ray's id: "CPU", "GPU", "memory" in bytes and others that Ray counts."""
    return {machine["NodeID"]: machine["Resources"] for machine in machines}


@contextmanager
def marked(options: RunOptions) -> Iterator[str]:
    """The name of something that lies in the storage for so long, by which machines know it; "" where none is asked."""
    if options.address is None:
        yield ""
        return
    with options.storage.marked() as marker:
        yield marker


@dataclass(frozen=True, kw_only=True)
class Checked:
    """Machines on which trials can run."""

    slots: int
    """So many packs fit on them at a time."""
    question: Question
    """What they were asked."""
    resources: Mapping[str, Mapping[str, float]]
    """See `machine_resources`."""


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
    slots = slots_of([machine["Resources"] for machine in machines], options)
    asked = question(options, marker, configs, corpus=corpus, measurements=measurements)
    if options.address is not None:
        check(faults(asked, _ask(asked, machines, given_up), gpus_of(machines)))
    if options.gpus_per_trial:
        check_cuda(options, given_up)
    return Checked(slots=slots, question=asked, resources=machine_resources(machines))


def _ask(
    asked: Question, machines: Sequence[dict[str, Any]], given_up: Callable[[], bool]
) -> Mapping[str, Findings | str]:
    """By address what each machine answers, or why it does not; nothing where waiting was given up."""
    task = ray.remote(num_cpus=0, max_retries=0)(look)
    sent = {
        address_of(node): task.options(resources={f"node:{address_of(node)}": 0.001}).remote(asked.model_dump_json())
        for node in machines
    }
    deadline_s = time.monotonic() + ANSWER_S
    while ray.wait(list(sent.values()), num_returns=len(sent), timeout=1.0)[1]:
        if given_up():
            return {}
        if time.monotonic() > deadline_s:
            break
    return {address: _answer(reference) for address, reference in sent.items()}


def _answer(reference: Any) -> Findings | str:
    try:
        return Findings.model_validate_json(ray.get(reference, timeout=0.1))
    except GetTimeoutError:
        return f"no answer within {ANSWER_S:g} s"
    except RayError as error:
        return last_line(error)
    except ValidationError:
        return "another version of it answered"


def check_cuda(options: RunOptions, given_up: Callable[[], bool]) -> None:
    """Raise UserError where a trial that asks for a GPU would find that torch cannot use it.

    A worker is asked, which may be on another machine; waiting for it ends early where `given_up` says so.
    """
    need = per_pack(options)
    answer = ray.remote(num_cpus=need["cpu"], num_gpus=need["gpu"])(cuda_problem).remote()
    while not ray.wait([answer], timeout=1.0)[0]:
        if given_up():
            return
    try:
        problem = ray.get(answer)
    except RayError as error:
        problem = f"its worker cannot use torch ({last_line(error)}): install torch on every machine of the cluster"
    if problem is not None:
        raise UserError(f"A trial asks for a GPU, and {problem}; or train on CPUs with --gpus-per-trial 0.")


def cuda_problem() -> str | None:
    """Why torch could not train on this process' GPU, and what to do; None where it could."""
    import torch

    if torch.cuda.is_available():
        return None
    if torch.version.cuda is None:
        return f"the installed torch {torch.__version__} has no CUDA support: install a build of torch for CUDA"
    return (
        f"torch {torch.__version__} finds none that it can use: see that nvidia-smi lists it and that the driver is "
        f"new enough for CUDA {torch.version.cuda}"
    )


def gpus_of(machines: Sequence[dict[str, Any]]) -> dict[str, float]:
    """How many GPUs Ray counts on each of them, by address."""
    return {address_of(node): float(node["Resources"].get("GPU", 0.0)) for node in machines}


def address_of(node: dict[str, Any]) -> str:
    """Of a machine as `nodes` gives it."""
    return str(node["NodeManagerAddress"])
