"""Later measurements over real Ray processes: at the same time, each trial's trouble its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cluster.run_options import RunOptions
from orchestrator.schedule.study_work import RunSummary, StudyWork
from orchestrator.schedule.trials_run import run_trials
from orchestrator.storage.storage import FolderStorage
from orchestrator.store.opening import open_store
from orchestrator.store.store import Store
from orchestrator.watch.listener import Listener
from orchestrator.worker.pack_run import TrialFunctions
from tests.support.scripted_measurements import FULL_DISK, IN_COMPANY, KEY, NAMES, measure_scripted, store_done
from tests.support.scripted_trials import (
    BAD_INPUT,
    EXITS,
    KILLED_ONCE,
    RAISES,
    SLOW,
    SOUND,
    log_lines,
    planned,
)
from trainables.errors import UserError
from trainables.trial_folder.folder import trial_directory
from trainables.trial_folder.outcome import TrialOutcome

pytestmark = pytest.mark.usefixtures("one_ray")


class Heard(Listener):
    """A listener that remembers."""

    def __init__(self) -> None:
        self.started_names: list[str] = []
        self.states: dict[str, str] = {}
        self.notes: list[str] = []

    def started(self, trial_id: str, name: str) -> None:
        assert trial_id not in self.states
        self.started_names.append(name)

    def finished(self, trial_id: str, outcome: TrialOutcome) -> None:
        self.states[trial_id] = outcome.state

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/results.db") as opened:
        yield opened


def measured(
    store: Store, folder: Path, seeds: list[int], heard: Heard | None = None, *, max_concurrent: int | None = None
) -> tuple[RunSummary, dict[int, dict[str, Any]]]:
    """The summary of a run over trials with these seeds, and what the store has by seed after it."""
    plan = planned(seeds)
    run_id = store_done(store, plan, folder)
    lacking = store.lacking(KEY, NAMES)
    summary = run_trials(
        [trial for trial in plan if trial.trial_id in lacking],
        store=store,
        run_id=run_id,
        options=RunOptions(storage=FolderStorage(folder), max_concurrent=max_concurrent),
        work=StudyWork(study=KEY, measurements=NAMES, seconds_per_trial=0.3, lacking=lacking),
        listener=heard or Listener(),
        functions=TrialFunctions(measure_kept=measure_scripted),
    )
    return summary, {row["config"]["seed"]: row["metrics"] for row in store.results(KEY)}


def test_one_trials_trouble_is_its_own_and_what_it_measured_before_is_kept(store: Store, tmp_path: Path) -> None:
    seeds = [SOUND, RAISES, EXITS, SOUND + 1, KILLED_ONCE, BAD_INPUT, SOUND + 2]
    heard = Heard()
    summary, metrics = measured(store, tmp_path, seeds, heard)
    whole = {seed: {"first": seed, "second": seed} for seed in seeds}
    half = {seed: {"first": seed} for seed in (RAISES, EXITS, BAD_INPUT)}
    assert metrics == whole | half
    causes = {row.config["seed"]: summary.not_measured.get(row.trial_id) for row in store.trials(KEY)}
    assert {seed for seed, cause in causes.items() if cause} == set(half)
    assert causes[RAISES] == "RuntimeError: the weights are on strike"
    assert causes[BAD_INPUT] == "The weights are missing: put them back."
    assert "its process died" in str(causes[EXITS])
    assert {row.state for row in store.trials(KEY)} == {"done"}, "a done trial stays done"
    twice = [EXITS, KILLED_ONCE]
    assert sorted(heard.started_names) == sorted(f"seed={seed}" for seed in seeds + twice)
    assert sorted(heard.states.values()) == ["done"] * 4 + ["failed"] * 3
    assert [note.partition(":")[0] for note in sorted(heard.notes)] == [f"seed={seed}" for seed in twice]
    assert not summary.interrupted
    assert "the weights are on strike" in (directory_of(store, tmp_path, RAISES) / "error.log").read_text()


def directory_of(store: Store, storage: Path, seed: int) -> Path:
    (trial_id,) = (row.trial_id for row in store.trials(KEY) if row.config["seed"] == seed)
    return trial_directory(storage, trial_id)


def test_trials_are_measured_at_the_same_time(store: Store, tmp_path: Path) -> None:
    summary, metrics = measured(store, tmp_path, list(range(IN_COMPANY, IN_COMPANY + 4)))
    assert not summary.not_measured, "each waits for another one to be under way"
    assert all(metrics.values())
    assert len(log_lines(tmp_path)) == 16


def test_a_request_to_stop_the_study_ends_its_measurements(store: Store, tmp_path: Path) -> None:
    class AsksAtTheFirst(Heard):
        def finished(self, trial_id: str, outcome: TrialOutcome) -> None:
            super().finished(trial_id, outcome)
            if len(self.states) == 1:
                store.ask_to_stop(KEY)

    heard, count = AsksAtTheFirst(), 20
    summary, metrics = measured(store, tmp_path, list(range(SLOW, SLOW + count)), heard, max_concurrent=1)
    assert summary.interrupted
    assert heard.notes == ["Stopping, as `sweep.py stop` asked."]
    measured_in_full = [seed for seed, found in metrics.items() if found.keys() == {"first", "second"}]
    assert 1 <= len(measured_in_full) < count
    assert len(heard.states) < count


def test_what_is_measured_is_not_measured_again(store: Store, tmp_path: Path) -> None:
    _, before = measured(store, tmp_path, [SOUND, SOUND + 1])
    lines = log_lines(tmp_path)
    assert store.lacking(KEY, NAMES) == {}
    _, after = measured(store, tmp_path, [SOUND, SOUND + 1, SOUND + 2])
    assert {seed: after[seed] for seed in before} == before
    assert log_lines(tmp_path)[len(lines) :] == [f"{w} {SOUND + 2} {n}" for n in NAMES for w in ("start", "end")]


def test_a_full_disk_ends_the_run_with_one_sentence(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is full: free space there and type the same command again"):
        measured(store, tmp_path, [FULL_DISK, *range(SLOW, SLOW + 6)])
    assert sum(map(bool, (row["metrics"] for row in store.results(KEY)))) < 7
