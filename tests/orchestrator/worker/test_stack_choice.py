"""How many trials a worker trains as one, on a CPU that is told to have a GPU's memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from orchestrator.cluster.run_options import RunOptions
from orchestrator.storage.storage import FolderStorage
from orchestrator.store.records import PlannedTrial
from orchestrator.worker import Job, TrialFunctions, run_pack
from orchestrator.worker.messages import EVENTS, Pack
from orchestrator.worker.stack_choice import chosen_size
from tests.trainables.trial.test_trial_run import smoke_trial
from trainables.runtime import Runtime
from trainables.stack import throughput
from trainables.trial import run_stack

CONFIGS = [smoke_trial(seed=seed) for seed in (1, 2, 3)]


@pytest.mark.parametrize(
    ("rates", "size", "why"),
    [
        (
            {1: 10.0, 2: 19.5, 3: 20.0},
            2,
            "up to 2 trials are trained as one, by steps of trials a second: ",
        ),
        ({}, 3, "up to 3 trials are trained as one, by the free memory of 80.0 GiB"),
    ],
)
def test_the_fastest_size_is_taken_or_what_fits_where_nothing_could_be_timed(
    rates: dict[int, float], size: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throughput, "_time", lambda *_: rates)
    monkeypatch.setattr(throughput, "_measured", {})
    chosen, clause = chosen_size(CONFIGS, Runtime(), 16, 80 * 2**30)
    assert chosen == size and clause.startswith(why)


def test_what_does_not_fit_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throughput, "_time", None)
    assert chosen_size(CONFIGS, Runtime(), 16, 1e6)[0] == 1


def test_trials_of_a_pack_are_timed_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throughput, "_measured", {})
    size, why = chosen_size(CONFIGS, Runtime(), 2, 80 * 2**30)
    assert size in (1, 2) and " with 1, " in why and why.endswith(" with 2")


def test_a_worker_with_a_gpu_says_how_many_it_trains_as_one_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the user, and in the log of every trial. The GPU is this CPU, from where the stack
    begins."""
    monkeypatch.setattr("trainables.device.triton_problem", lambda _: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (80 * 2**30, 80 * 2**30))
    monkeypatch.setattr(throughput, "_time", lambda *_: {1: 10.0, 2: 20.0, 3: 20.5})
    monkeypatch.setattr(throughput, "_measured", {})
    monkeypatch.setattr(throughput, "on_gpu", lambda _: False)
    at_a_time = list[int]()

    def on_cpu(tasks: object, *, runtime: Runtime, most: int, **others: object) -> object:
        at_a_time.append(most)
        return run_stack(tasks, runtime=replace(runtime, device="cpu"), most=most, **others)  # type: ignore[arg-type]

    monkeypatch.setattr("trainables.trial.run_stack", on_cpu)
    monkeypatch.setattr(throughput, "global_random_states", lambda _: {})
    monkeypatch.setattr(throughput, "set_global_random_states", lambda *_: None)
    options = RunOptions(storage=FolderStorage(tmp_path), gpus_per_trial=1)
    options = replace(options, runtime=replace(options.runtime, device="cuda"))
    trials = tuple(PlannedTrial.of(config, f"trial {config.seed}") for config in CONFIGS)
    sent = list[str]()
    run_pack(
        Pack(trials, stack=3),
        Job(options=options, measurements=(), functions=TrialFunctions()),
        sent.append,
    )
    events = [event for text in sent for event in EVENTS.validate_json(text)]
    why = "up to 2 trials are trained as one, by steps of trials a second: 10 with 1, 20 with 2, 20.5 with 3"
    assert at_a_time == [2] and [event.note for event in events if event.note] == [why]
    assert [event.outcome.state for event in events if event.outcome] == ["done"] * 3
    logs = [path.read_text() for path in tmp_path.glob("trials/*/*/log.txt")]
    assert len(logs) == 3 and all(log.count(why) == 1 for log in logs)
