"""A pack in a worker process, without Ray: whose fault it is when a write fails."""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import torch

from orchestrator.cluster.run_options import RunOptions
from orchestrator.storage.storage import FolderStorage
from orchestrator.store.records import PlannedTrial
from orchestrator.worker import Job, TrialFunctions, pack_run, run_pack
from orchestrator.worker.failures import BrokenProcessError, MemoryShortageError
from orchestrator.worker.messages import EVENTS, Pack, TrialEvent
from tests.support.scripted_trials import RAISES, SOUND, planned, run_scripted
from tests.support.small_disk import change, small_disk, small_files
from tests.support.smoke_trials import smoke_trial
from trainables.config import TrialConfig
from trainables.errors import UserError
from trainables.measurements.spectrum import GramSpectrum
from trainables.trial_folder import folder as folder_module
from trainables.trial_folder.folder import SupersededError, TrialFolder
from trainables.trial_folder.outcome import TrialOutcome


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """`run_pack` sets this variable in its process."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def events_of(
    seeds: list[int],
    storage: Path,
    *,
    broken: str | None = None,
    run_trial: Callable[..., TrialOutcome] = run_scripted,
) -> list[TrialEvent]:
    """What the worker of a pack tells, which comes to its end unless its process is `broken` for
    this reason."""
    pack, sent = Pack(tuple(planned(seeds))), list[str]()
    options = RunOptions(storage=FolderStorage(storage))
    job = Job(options=options, measurements=(), functions=TrialFunctions(run_trial=run_trial))
    if broken is None:
        run_pack(pack, job, sent.append)
    else:
        with pytest.raises(BrokenProcessError, match=broken):
            run_pack(pack, job, sent.append)
    return [event for text in sent for event in EVENTS.validate_json(text)]


def test_a_log_says_how_a_trial_ended_that_could_not_be_run(tmp_path: Path) -> None:
    def refuse(config: TrialConfig, **_arguments: Any) -> TrialOutcome:
        raise UserError(f"the corpus of seed {config.seed} is another one by now: put it back")

    (*_, event) = events_of([SOUND], tmp_path, run_trial=refuse)
    assert event.outcome is not None and event.outcome.state == "failed"
    log = FolderStorage(tmp_path).trial(event.trial_id).log_file.read_text()
    assert log.endswith(f" failed: {event.outcome.cause}\n")


def fill_gpu() -> None:
    """What torch raises on a machine with a GPU."""
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 80.00 GiB.")


@pytest.mark.parametrize(
    "take",
    [
        lambda: np.empty(10**15),
        lambda: torch.empty(10**15),
        lambda: [0] * 10**15,
        lambda: GramSpectrum(10**8),
        fill_gpu,
    ],
)
def test_what_asks_for_more_memory_than_there_is_ends_the_process_and_blames_nobody_yet(
    tmp_path: Path, take: Callable[[], object]
) -> None:
    def take_memory(config: TrialConfig, **arguments: Any) -> TrialOutcome:
        if config.seed == SOUND:
            take()
        return run_scripted(config, **arguments)

    job = Job(
        options=RunOptions(storage=FolderStorage(tmp_path)),
        measurements=(),
        functions=TrialFunctions(run_trial=take_memory),
    )
    sent: list[str] = []
    with pytest.raises(MemoryShortageError):
        run_pack(Pack(tuple(planned([RAISES, SOUND, SOUND + 1]))), job, sent.append)
    events = [event for text in sent for event in EVENTS.validate_json(text)]
    assert [event.outcome.state for event in events if event.outcome is not None] == ["failed"]
    assert events[-1] == TrialEvent(
        trial_id=planned([SOUND])[0].trial_id, place=socket.gethostname()
    )


def test_what_tune_runs_in_a_worker_imports_nothing_of_the_driver() -> None:
    code = (
        "import sys; from orchestrator.cluster import LateMachines, ray_patches; "
        "from orchestrator.worker import Job, Parcel, run_pack; "
        "print(sorted({'alembic', 'matplotlib', 'pandas', 'scipy', 'sqlalchemy', 'torch'} & "
        "set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


def test_a_disk_that_became_read_only_ends_the_pack(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", kib=1024) as disk:
        change(disk, "ro")
        start, halt = (
            event.halt for event in events_of([SOUND, SOUND + 1], disk, broken="The disk")
        )
    assert start is None
    assert "is read-only: make it writable" in str(halt)


def test_a_disk_that_became_read_only_ends_a_stack_too(tmp_path: Path) -> None:
    """By the same event, which ends the sweep: it is no trial's failure, and no stack of another
    size helps."""
    pack, sent = Pack(tuple(planned([SOUND, SOUND + 1])), stack=2), list[str]()
    with small_disk(tmp_path / "disk", kib=1024) as disk:
        job = Job(
            options=RunOptions(storage=FolderStorage(disk)),
            measurements=(),
            functions=TrialFunctions(),
        )
        change(disk, "ro")
        with pytest.raises(BrokenProcessError, match="The disk"):
            run_pack(pack, job, sent.append)
    events = [event for text in sent for event in EVENTS.validate_json(text)]
    assert "is read-only: make it writable" in str(events[-1].halt)
    assert [event.outcome for event in events] == [None] * len(events)


def test_of_a_stack_the_one_that_its_search_stops_keeps_a_checkpoint_and_the_others_are_done(
    tmp_path: Path,
) -> None:
    trials, sent = (
        [PlannedTrial.of(smoke_trial(seed=seed), f"{seed}") for seed in (1, 2)],
        list[str](),
    )
    pack = Pack(
        tuple(trials),
        stack=2,
        stop_above={trials[0].trial_id: {1: 0.0}, trials[1].trial_id: {1: 99.0}},
    )
    job = Job(
        options=RunOptions(storage=FolderStorage(tmp_path)),
        measurements=(),
        functions=TrialFunctions(),
    )
    run_pack(pack, job, sent.append)
    events = [event for text in sent for event in EVENTS.validate_json(text)]
    ended = {event.trial_id: event.outcome.state for event in events if event.outcome is not None}
    assert ended == {trials[0].trial_id: "pruned", trials[1].trial_id: "done"}
    kept = {path.parent.name for path in tmp_path.glob("trials/*/*/checkpoint*")}
    assert kept == {trials[0].trial_id}


def test_a_limit_of_file_sizes_ends_the_pack(tmp_path: Path) -> None:
    with small_files(32):
        events = events_of([SOUND, SOUND + 1], tmp_path, broken="The disk")
    assert {event.trial_id for event in events} == {planned([SOUND])[0].trial_id}
    assert "ulimit -f" in str(events[-1].halt)


def test_a_trial_whose_folder_is_removed_is_left_to_another_attempt(tmp_path: Path) -> None:
    def removed(
        config: TrialConfig, *, directory: Path, note: Callable[[str], None], **_: Any
    ) -> TrialOutcome:
        folder = TrialFolder(directory, config.trial_id)
        folder.take_over()
        note("a file of it was damaged")
        shutil.rmtree(tmp_path / "trials")
        folder.write_result(TrialOutcome(trial_id=config.trial_id, state="done"), None)
        raise AssertionError("a result was written into a folder that is gone")

    events = events_of(
        [SOUND], tmp_path, broken="was removed while the trial ran", run_trial=removed
    )
    assert [event.note for event in events] == [None, "a file of it was damaged"]
    assert not any(event.outcome for event in events)


def test_a_storage_that_is_removed_stops_the_sweep(tmp_path: Path) -> None:
    def removed(config: TrialConfig, **_: Any) -> TrialOutcome:
        shutil.rmtree(tmp_path / "results")
        return TrialOutcome(trial_id=config.trial_id, state="done")

    (tmp_path / "results").mkdir()
    *_, halt = events_of(
        [SOUND, SOUND + 1], tmp_path / "results", broken="is gone", run_trial=removed
    )
    assert (
        "put it back, or name another one with --storage, and type the same command again"
        in str(halt.halt)
    )
    assert halt.trial_id == planned([SOUND])[0].trial_id and halt.outcome is None


def test_a_result_that_cannot_be_read_now_stops_the_sweep_and_is_no_failure_of_its_trial(
    tmp_path: Path,
) -> None:
    """A retry would remove it, and train the trial again."""

    def unreadable(config: TrialConfig, *, directory: Path, **_: Any) -> TrialOutcome:
        folder = TrialFolder(directory, config.trial_id)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(folder_module, "read_vector", stale)
            outcome = TrialOutcome(
                trial_id=config.trial_id, state="done", measurements={"spectrum@1": {}}
            )
            folder.spectrum(outcome)
        raise AssertionError("a file that cannot be read was read")

    start, halt = events_of([SOUND, SOUND + 1], tmp_path, broken="Stale", run_trial=unreadable)
    assert start.outcome is None and halt.outcome is None
    assert re.search(
        r"spectrum\.npy cannot be read \(Stale file handle\): give this user access", str(halt.halt)
    )


def stale(*_: object) -> NoReturn:
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def test_any_other_trouble_is_the_trials_own_and_its_mates_go_on(tmp_path: Path) -> None:
    seeds = [RAISES, SOUND, SOUND + 1]
    trial_id = planned(seeds)[1].trial_id
    trial_file = tmp_path / "trials" / trial_id[:2] / trial_id
    trial_file.parent.mkdir(parents=True)
    trial_file.write_text("a file where the folder should be")
    outcomes = [event.outcome for event in events_of(seeds, tmp_path) if event.outcome is not None]
    assert [outcome.state for outcome in outcomes] == ["failed", "failed", "done"]
    assert str(outcomes[1].cause).startswith("FileExistsError")


def test_a_failure_that_was_not_sent_yet_is_told_before_a_worker_that_lost_its_trial_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several short trials share a message, here all of them."""
    monkeypatch.setattr(pack_run, "REPORT_EVERY_S", 60.0)

    def superseded_at_the_second(config: TrialConfig, **arguments: Any) -> TrialOutcome:
        if config.seed == SOUND:
            raise SupersededError("another worker has taken over the trial")
        return run_scripted(config, **arguments)

    seeds = [RAISES, SOUND, SOUND + 1]
    events = events_of(
        seeds, tmp_path, broken="another worker has taken over", run_trial=superseded_at_the_second
    )
    *_, failed, second = events
    first_id, second_id, _ = (trial.trial_id for trial in planned(seeds))
    assert failed.outcome is not None
    assert (failed.outcome.trial_id, failed.outcome.state) == (first_id, "failed")
    assert second == TrialEvent(trial_id=second_id, place=socket.gethostname())
