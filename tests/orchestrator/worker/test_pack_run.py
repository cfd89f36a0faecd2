from __future__ import annotations

import errno
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from orchestrator.cluster import RunOptions
from orchestrator.storage import FolderStorage
from orchestrator.store import PlannedTrial
from orchestrator.worker import (
    EVENTS,
    Job,
    MemoryShortageError,
    Pack,
    TrialEvent,
    TrialFunctions,
    pack_run,
    run_pack,
)
from orchestrator.worker.failures import BrokenProcessError
from tests.support.failing_reads import failing_reads
from tests.support.scripted_trials import RAISES, SOUND, planned, run_scripted
from tests.support.small_disk import change, small_disk
from tests.support.smoke_trials import smoke_trial
from trainables.config import TrialConfig
from trainables.errors import UserError
from trainables.measurements import SpectrumStream
from trainables.runtime import Runtime
from trainables.stack import run_stack
from trainables.trial_folder import SupersededError, TrialFolder, TrialOutcome

Run = Callable[..., TrialOutcome]


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore OMP_NUM_THREADS after the test, because `run_pack` sets it."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def events_of(
    seeds: Sequence[int],
    storage: Path,
    *,
    broken: str | None = None,
    kind: type[BrokenProcessError] = BrokenProcessError,
    run_trial: Run | None = run_scripted,
    trials: Sequence[PlannedTrial] | None = None,
    options: Mapping[str, Any] | None = None,
    **fields: Any,
) -> list[TrialEvent]:
    pack, sent = Pack(tuple(trials or planned(seeds)), **fields), list[str]()
    run_options = RunOptions(storage=FolderStorage(storage), **(options or {}))
    job = Job(options=run_options, measurements=(), functions=TrialFunctions(run_trial=run_trial))
    if broken is None:
        run_pack(pack, job, lambda text, _: sent.append(text))
    else:
        with pytest.raises(kind, match=broken):
            run_pack(pack, job, lambda text, _: sent.append(text))
    return [event for text in sent for event in EVENTS.validate_json(text)]


def smoke_trials(*seeds: int) -> list[PlannedTrial]:
    return [PlannedTrial.of(smoke_trial(seed=seed), f"{seed}") for seed in seeds]


def id_of(seed: int) -> str:
    return planned([seed])[0].trial_id


def test_log_reports_the_end(tmp_path: Path) -> None:
    def refuse(config: TrialConfig, **_arguments: Any) -> TrialOutcome:
        raise UserError(f"the corpus of seed {config.seed} is another one by now: put it back")

    (*_, event) = events_of([SOUND], tmp_path, run_trial=refuse)
    assert event.outcome is not None and event.outcome.state == "failed"
    log = FolderStorage(tmp_path).trial(event.trial_id).log_file.read_text()
    assert log.endswith(f" failed: {event.outcome.cause}\n")


def fill_gpu() -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 80.00 GiB.")


@pytest.mark.parametrize(
    "take",
    [
        lambda: np.empty(10**15),
        lambda: torch.empty(10**15),
        lambda: [0] * 10**15,
        lambda: SpectrumStream("gram", 10**8),
        fill_gpu,
    ],
)
def test_out_of_memory_ends_process(tmp_path: Path, take: Callable[[], object]) -> None:
    def take_memory(config: TrialConfig, **arguments: Any) -> TrialOutcome:
        if config.seed == SOUND:
            take()
        return run_scripted(config, **arguments)

    seeds, kind = [RAISES, SOUND, SOUND + 1], MemoryShortageError
    events = events_of(seeds, tmp_path, broken=".", kind=kind, run_trial=take_memory)
    assert [event.outcome.state for event in events if event.outcome is not None] == ["failed"]
    assert events[-1] == TrialEvent(trial_id=id_of(SOUND), host=socket.gethostname())


def test_workers_import_no_driver() -> None:
    code = (
        "import sys; from orchestrator.cluster import LateMachines, ray_private; "
        "from orchestrator.worker import Job, Parcel, run_pack; "
        "print(sorted({'alembic', 'matplotlib', 'pandas', 'scipy', 'sqlalchemy', 'torch'} & "
        "set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


@pytest.mark.parametrize("at_once", [1, 2])
def test_read_only_disk_ends_pack(tmp_path: Path, at_once: int) -> None:
    with small_disk(tmp_path / "disk", kib=1024) as disk:
        change(disk, "ro")
        run_trial = run_scripted if at_once == 1 else None
        events = events_of(
            [SOUND, SOUND + 1], disk, broken="The disk", run_trial=run_trial, at_once=at_once
        )
    assert "is read-only: make it writable" in str(events[-1].halt)
    assert not any(event.outcome for event in events)


def test_pruned_trial_leaves_its_mates(tmp_path: Path) -> None:
    trials = smoke_trials(1, 2)
    pruned, done = (trial.trial_id for trial in trials)
    rules = {pruned: {1: 0.0}, done: {1: 99.0}}
    events = events_of([], tmp_path, trials=trials, run_trial=None, at_once=2, stop_above=rules)
    ended = {event.trial_id: event.outcome.state for event in events if event.outcome is not None}
    assert ended == {pruned: "pruned", done: "done"}
    assert {path.parent.name for path in tmp_path.glob("trials/*/*/checkpoint*")} == {pruned}


def test_gpu_worker_reports_stack_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_a_time = list[int]()

    def on_cpu(tasks: Any, *, runtime: Runtime, most: int, **arguments: Any) -> Any:
        at_a_time.append(most)
        return run_stack(tasks, runtime=replace(runtime, device="cpu"), most=most, **arguments)

    def chosen_size(*arguments: Any) -> tuple[int, str]:
        return arguments[-1], f"{arguments[-1]} at a time, by steps"

    left_by_the_last_pack = [1]
    monkeypatch.setattr("trainables.stack.chosen_size", chosen_size)
    monkeypatch.setattr("trainables.stack.run_stack", on_cpu)
    monkeypatch.setattr(torch.cuda, "empty_cache", left_by_the_last_pack.clear)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (2 - len(left_by_the_last_pack), 2))
    options = {"gpus_per_trial": 1, "runtime": Runtime(device="cuda")}
    trials = smoke_trials(1, 2, 3)
    events = events_of([], tmp_path, trials=trials, run_trial=None, at_once=3, options=options)
    (why,) = (event.note for event in events if event.note)
    assert (at_a_time, why) == ([2], "2 at a time, by steps")
    assert [event.outcome.state for event in events if event.outcome] == ["done"] * 3


def test_no_result_in_removed_folder(tmp_path: Path) -> None:
    def removed(
        config: TrialConfig, *, directory: Path, note: Callable[[str], None], **_: Any
    ) -> TrialOutcome:
        folder = TrialFolder(directory, config.trial_id)
        folder.take_over()
        note("a file of it was damaged")
        shutil.rmtree(tmp_path / "trials")
        folder.write_result(TrialOutcome(trial_id=config.trial_id, state="done"), None)
        raise AssertionError("a result was written into a deleted folder")

    events = events_of([SOUND], tmp_path, broken="was removed", run_trial=removed)
    assert [event.note for event in events] == [None, "a file of it was damaged"]
    assert not any(event.outcome for event in events)


def test_removed_storage_stops_the_sweep(tmp_path: Path) -> None:
    def removed(config: TrialConfig, **_: Any) -> TrialOutcome:
        shutil.rmtree(tmp_path / "results")
        return TrialOutcome(trial_id=config.trial_id, state="done")

    results = tmp_path / "results"
    results.mkdir()
    *_, halt = events_of([SOUND, SOUND + 1], results, broken="is gone", run_trial=removed)
    assert "name another one with --storage, and run the same command again" in str(halt.halt)
    assert halt.trial_id == id_of(SOUND) and halt.outcome is None


def test_unreadable_result_stops_the_sweep(tmp_path: Path) -> None:
    """The sweep must stop, because a retry would train the trial a second time."""

    def unreadable(config: TrialConfig, *, directory: Path, **_: Any) -> TrialOutcome:
        measurements: dict[str, Any] = {"spectrum@1": {}}
        outcome = TrialOutcome(trial_id=config.trial_id, state="done", measurements=measurements)
        with failing_reads("spectrum.npy", errno.ESTALE):
            TrialFolder(directory, config.trial_id).spectrum(outcome)
        raise AssertionError("an unreadable file was read")

    start, halt = events_of([SOUND, SOUND + 1], tmp_path, broken="Stale", run_trial=unreadable)
    assert start.outcome is None and halt.outcome is None
    assert "Stale file handle" in str(halt.halt)


def test_other_errors_fail_only_the_trial(tmp_path: Path) -> None:
    seeds = [RAISES, SOUND, SOUND + 1]
    trial_file = tmp_path / "trials" / id_of(SOUND)[:2] / id_of(SOUND)
    trial_file.parent.mkdir(parents=True)
    trial_file.write_text("a file in host of the folder")
    outcomes = [event.outcome for event in events_of(seeds, tmp_path) if event.outcome is not None]
    assert [outcome.state for outcome in outcomes] == ["failed", "failed", "done"]
    assert str(outcomes[1].cause).startswith("FileExistsError")


def test_unsent_failure_is_sent_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker delays its messages to combine them, so some are unsent when it stops."""
    monkeypatch.setattr(pack_run, "REPORT_EVERY_S", 60.0)

    def superseded_at_the_second(config: TrialConfig, **arguments: Any) -> TrialOutcome:
        if config.seed == SOUND:
            raise SupersededError("another worker has taken over the trial")
        return run_scripted(config, **arguments)

    seeds = [RAISES, SOUND, SOUND + 1]
    events = events_of(seeds, tmp_path, broken="taken over", run_trial=superseded_at_the_second)
    *_, failed, second = events
    assert failed.outcome is not None
    assert (failed.outcome.trial_id, failed.outcome.state) == (id_of(RAISES), "failed")
    assert second == TrialEvent(trial_id=id_of(SOUND), host=socket.gethostname())
