"""A pack in a worker process, without Ray: whose fault it is when a write fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.cluster.run_options import RunOptions
from orchestrator.storage.storage import FolderStorage
from orchestrator.worker import pack_run
from orchestrator.worker.messages import EVENTS, Assignment, TrialEvent
from orchestrator.worker.pack_run import BrokenProcessError, Job, TrialFunctions, run_pack
from tests.support.scripted_trials import RAISES, SOUND, planned, run_scripted
from tests.support.small_disk import change, small_disk, small_files
from trainables.config import TrialConfig
from trainables.trial_folder.folder import SupersededError
from trainables.trial_folder.outcome import TrialOutcome


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """`run_pack` sets this variable in its process."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def configs(seeds: list[int]) -> list[TrialConfig]:
    return [TrialConfig.model_validate(trial.config) for trial in planned(seeds)]


def assignment(pack: list[TrialConfig]) -> Assignment:
    return Assignment(configs=tuple(pack), names=tuple(f"seed={config.seed}" for config in pack))


def run_until_it_breaks(pack: list[TrialConfig], storage: Path) -> list[TrialEvent]:
    """Run a pack whose disk takes nothing more at some time; what it told."""
    sent: list[str] = []
    options = RunOptions(storage=FolderStorage(storage))
    job = Job(options=options, measurements=(), functions=TrialFunctions(run_trial=run_scripted))
    with pytest.raises(BrokenProcessError, match="The disk"):
        run_pack(assignment(pack), job, sent.append)
    return [event for text in sent for event in EVENTS.validate_json(text)]


def test_a_full_disk_ends_the_pack_and_is_no_trials_failure(tmp_path: Path) -> None:
    pack = configs(list(range(SOUND, SOUND + 9)))
    with small_disk(tmp_path / "disk", kib=24) as disk:
        events = run_until_it_breaks(pack, disk)
        ended = [event.outcome for event in events if event.outcome is not None]
        assert 1 <= len(ended) < len(pack)
        assert [outcome.state for outcome in ended] == ["done"] * len(ended)
        halt = f"The disk of {disk} is full: free space there and type the same command again"
        assert events[-1] == TrialEvent(trial_id=pack[len(ended)].trial_id, halt=halt)
        assert {event.trial_id for event in events} == {config.trial_id for config in pack[: len(ended) + 1]}


def test_a_disk_that_became_read_only_ends_the_pack(tmp_path: Path) -> None:
    pack = configs([SOUND, SOUND + 1])
    with small_disk(tmp_path / "disk", kib=1024) as disk:
        change(disk, "ro")
        start, halt = (event.halt for event in run_until_it_breaks(pack, disk))
    assert start is None
    assert "is read-only: make it writable" in str(halt)


def test_a_limit_of_file_sizes_ends_the_pack(tmp_path: Path) -> None:
    pack = configs([SOUND, SOUND + 1])
    with small_files(32):
        events = run_until_it_breaks(pack, tmp_path)
    assert {event.trial_id for event in events} == {pack[0].trial_id}
    assert "ulimit -f" in str(events[-1].halt)


def test_any_other_trouble_is_the_trials_own_and_its_mates_go_on(tmp_path: Path) -> None:
    pack = configs([RAISES, SOUND, SOUND + 1])
    trial_file = tmp_path / "trials" / pack[1].trial_id[:2] / pack[1].trial_id
    trial_file.parent.mkdir(parents=True)
    trial_file.write_text("a file where the folder should be")
    sent: list[str] = []
    options = RunOptions(storage=FolderStorage(tmp_path))
    job = Job(options=options, measurements=(), functions=TrialFunctions(run_trial=run_scripted))
    run_pack(assignment(pack), job, sent.append)
    outcomes = [event.outcome for text in sent for event in EVENTS.validate_json(text) if event.outcome is not None]
    assert [outcome.state for outcome in outcomes] == ["failed", "failed", "done"]
    assert str(outcomes[1].cause).startswith("FileExistsError")


def test_a_failure_that_was_not_sent_yet_is_told_before_a_worker_that_lost_its_trial_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several short trials share a message, here all of them."""
    monkeypatch.setattr(pack_run, "REPORT_EVERY_S", 60.0)
    pack, sent = configs([RAISES, SOUND, SOUND + 1]), list[str]()

    def superseded_at_the_second(config: TrialConfig, **arguments: Any) -> TrialOutcome:
        if config.seed == SOUND:
            raise SupersededError("another worker has taken over the trial")
        return run_scripted(config, **arguments)

    job = Job(
        options=RunOptions(storage=FolderStorage(tmp_path)),
        measurements=(),
        functions=TrialFunctions(run_trial=superseded_at_the_second),
    )
    with pytest.raises(BrokenProcessError, match="another worker has taken over"):
        run_pack(assignment(pack), job, sent.append)
    *_, failed, second = (event for text in sent for event in EVENTS.validate_json(text))
    assert failed.outcome is not None
    assert (failed.outcome.trial_id, failed.outcome.state) == (pack[0].trial_id, "failed")
    assert second == TrialEvent(trial_id=pack[1].trial_id)
