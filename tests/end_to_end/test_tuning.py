"""The command on the study `fair_capacity` at scale smoke: real Ray, real training."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.store.opening import open_store
from tests.support.command import results_table, sweep
from tests.support.one_ray import without_ray

OTHER = """import json
from pathlib import Path

from search_spaces.study import Study
from trainables.config import TrialConfig

CONFIG = TrialConfig.model_validate_json((Path(__file__).parent / "config.json").read_text())
STUDY = Study(name="other", trials=lambda corpus: [CONFIG])
"""


@pytest.mark.usefixtures("one_ray")
def test_the_study_runs_once_and_another_study_finishes_a_trial_that_it_pruned(tmp_path: Path) -> None:
    command = ("fair_capacity", "--scale", "smoke", "--storage", tmp_path)
    first = sweep(*command)
    assert first.returncode == 0, first.stdout + first.stderr
    for said in ("stage 2: 9 trials, 3 a side, chosen by TPE", "21 trials: 21 to run, 0 already done", "[21/21]"):
        assert said in first.stdout, first.stdout
    rows = results_table(tmp_path, "fair_capacity")
    assert len(rows) == 21
    assert {row["state"] for row in rows if " stage2 " not in row["name"]} == {"done"}
    pruned = [row for row in rows if row["state"] == "pruned"]
    assert pruned, "at this scale, some trials are stopped early"
    assert all("stopped after epoch 1: its validation loss of" in row["cause"] for row in pruned)

    with without_ray():
        again = sweep(*command)
    assert again.returncode == 0
    assert "21 trials: 0 to run" in again.stdout
    assert results_table(tmp_path, "fair_capacity") == rows

    with open_store(str(tmp_path / "results.db")) as store:
        [study] = store.studies()
        stopped = next(row for row in store.trials(study.key) if row.state == "pruned")
        (tmp_path / "config.json").write_text(json.dumps(stopped.config))
        (tmp_path / "other.py").write_text(OTHER)
        # The config is resolved already, and at scale paper a config is trained as it is.
        other = sweep(tmp_path / "other.py", "--scale", "paper", "--corpus", "pydocs", "--gpus-per-trial", "0",
                      "--storage", tmp_path)  # fmt: skip
        assert other.returncode == 0, other.stdout + other.stderr
        assert "1 trial: 1 to run, 0 already done" in other.stdout
        assert store.states([stopped.trial_id]) == {stopped.trial_id: "done"}
        assert len(store.epochs(stopped.trial_id)) == stopped.config["training"]["epochs"]
