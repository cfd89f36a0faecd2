"""What workers say of themselves, and what becomes of processes that they fork: real processes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cluster.run_options import RunOptions
from orchestrator.storage.storage import FolderStorage
from orchestrator.worker import Job, TrialFunctions, run_pack
from orchestrator.worker.beats import Beat, beating
from orchestrator.worker.messages import EVENTS, Pack
from tests.support.command import wait_for
from tests.support.processes import Process, Say
from tests.support.scripted_trials import SOUND, planned, run_scripted
from trainables.config import TrialConfig
from trainables.pulse import PULSE
from trainables.trial_folder.folder import SupersededError, TrialFolder
from trainables.trial_folder.outcome import TrialOutcome


def beat_in(sent: list[bytes], place: str) -> Beat:
    def there() -> list[Beat]:
        return [beat for beat in map(Beat.model_validate_json, sent) if beat.place == place]

    return wait_for(there, timeout_s=30, what=f"a beat {place}")[0]


def test_a_beat_says_how_far_the_work_is_and_at_which_line_of_the_users_file_it_stands() -> None:
    sent: list[bytes] = []
    with beating(sent.append, "here", ["test_beats"]):
        PULSE.begin("one")
        PULSE.begin_step(2, 114)
        beat = beat_in(sent, "in epoch 2, step 114")
    assert (beat.trial_id, beat.machine, beat.pid, beat.progress) == ("one", "here", os.getpid(), 2)
    assert beat.line.startswith("test_beats.py, line ")
    assert 10**7 < beat.memory_bytes < beat.machine_memory.total_bytes
    count = len(sent)
    time.sleep(0.1)
    assert len(sent) == count, "a beat after the end"


def fork_within_a_trial(say: Say) -> None:
    with beating(lambda _: None, "here", []):
        child = os.fork()
        if child == 0:
            time.sleep(1000)
        say(child)
        time.sleep(1000)


@pytest.mark.skipif(not Path("/proc").exists(), reason="of Linux")
def test_what_a_trial_forked_ends_with_it(tmp_path: Path) -> None:
    process = Process(tmp_path, fork_within_a_trial)
    child = process.hear()
    assert Path(f"/proc/{child}").exists()
    process.kill()
    wait_for(lambda: not _lives(child), timeout_s=10, what="the end of the fork")


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def run_forked(config: TrialConfig, *, directory: Path, **arguments: Any) -> TrialOutcome:
    """The trial, twice: in this process, and before in one that it forks."""
    child = os.fork()
    if child:
        (directory / "status").write_text(str(os.waitpid(child, 0)[1]))
        return run_scripted(config, directory=directory, **arguments)
    return run_scripted(config, directory=directory.parent / "fork", **arguments)


def run_forking_pack(say: Say, storage: Path) -> None:
    job = Job(
        options=RunOptions(storage=FolderStorage(storage)),
        measurements=(),
        functions=TrialFunctions(run_trial=run_forked),
    )
    for folder in storage.glob("trials/*"):
        (folder / "fork").mkdir()
    run_pack(Pack(tuple(planned([SOUND]))), job, say)


def test_a_fork_of_a_worker_that_goes_on_with_the_trial_tells_nothing_and_ends(
    tmp_path: Path,
) -> None:
    trial_id = planned([SOUND])[0].trial_id
    (tmp_path / "trials" / trial_id[:2]).mkdir(parents=True)
    process = Process(tmp_path, run_forking_pack, tmp_path)
    events = [event for text in process.end() for event in EVENTS.validate_json(text)]
    assert [event.epoch.epoch for event in events if event.epoch] == [1, 2, 3, 4]
    assert [event.outcome.state for event in events if event.outcome] == ["done"]
    assert (tmp_path / "trials" / trial_id[:2] / trial_id / "status").read_text() == "0"


def write_in_a_fork(say: Say, directory: Path) -> None:
    folder = TrialFolder(directory, "one")
    folder.take_over()
    folder.check_fence()
    if os.fork() == 0:
        try:
            folder.check_fence()
        except SupersededError:
            os._exit(7)
        os._exit(0)
    say(os.waitstatus_to_exitcode(os.wait()[1]))


def test_a_fork_has_no_right_to_write_in_the_trials_folder(tmp_path: Path) -> None:
    assert Process(tmp_path, write_in_a_fork, tmp_path).end() == [7]
