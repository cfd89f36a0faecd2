"""Later measurements over real Ray processes: at the same time, each trial's trouble its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.schedule.study_work import RunSummary
from orchestrator.schedule.trials_run import run_trials
from orchestrator.store.store import Store
from orchestrator.worker import TrialFunctions
from tests.support.notes import Heard
from tests.support.scripted_measurements import KEY, NAMES, measure_scripted, store_done
from tests.support.scripted_trials import (
    BAD_INPUT,
    EXITS,
    RAISES,
    SOUND,
    planned,
    work_in,
)
from trainables.trial_folder.folder import trial_directory

pytestmark = pytest.mark.usefixtures("one_ray")


def measured(
    store: Store, folder: Path, seeds: list[int], **changes: Any
) -> tuple[RunSummary, dict[int, Any]]:
    """The summary of a run over trials with these seeds, and what the store has by seed after
    it."""
    plan = planned(seeds)
    store_done(store, plan, folder)
    work = work_in(
        folder,
        store,
        study=KEY,
        measurements=NAMES,
        lacking=store.lacking(KEY, NAMES),
        functions=TrialFunctions(measure_kept=measure_scripted),
        **changes,
    )
    return run_trials(plan, work), {
        row["config"]["seed"]: row["metrics"] for row in store.results(KEY)
    }


def test_each_trouble_is_its_trials_own(store: Store, tmp_path: Path) -> None:
    seeds = [SOUND, RAISES, EXITS, SOUND + 1, BAD_INPUT, SOUND + 2]
    heard = Heard()
    summary, metrics = measured(store, tmp_path, seeds, listener=heard)
    whole = {seed: {"first": seed, "second": seed} for seed in seeds}
    half = {seed: {"first": seed} for seed in (RAISES, EXITS, BAD_INPUT)}
    assert metrics == whole | half
    ids = {row.config["seed"]: row.trial_id for row in store.trials(KEY)}
    assert set(summary.not_measured) == {ids[seed] for seed in half}
    assert summary.not_measured[ids[RAISES]] == "RuntimeError: the weights are on strike"
    assert summary.not_measured[ids[BAD_INPUT]] == "The folder has no train.txt: put one there."
    assert "its process died" in summary.not_measured[ids[EXITS]]
    assert {row.state for row in store.trials(KEY)} == {"done"}, "a done trial stays done"
    assert sorted(heard.starts) == sorted(f"seed={seed}" for seed in [*seeds, EXITS])
    assert (
        sorted(outcome.state for outcome in heard.outcomes.values())
        == ["done"] * 3 + ["failed"] * 3
    )
    assert [note.partition(":")[0] for note in heard.notes] == [f"seed={EXITS}"]
    assert not summary.interrupted
    assert (
        "the weights are on strike"
        in (trial_directory(tmp_path, ids[RAISES]) / "error.log").read_text()
    )
