from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator import results
from tests.support.command import results_table, sweep
from tests.support.one_ray import without_ray
from tests.support.smoke_trials import smoke_plan, train_here
from trainables.errors import UserError

KEY = "training.learning_rate"
SMOKE = ("gss_grid", "--scale", "smoke", "--max-concurrent", "1", "--storage")


def test_swept_setting_reuses_done_trials(copied: Path) -> None:
    """The done trials were trained without `--set`, at their usual learning rate of 0.02."""
    alone = results_table(copied)
    train_here(copied, smoke_plan("gss_grid", settings={KEY: (0.01,)}))
    with without_ray():
        answer = sweep(*SMOKE, copied, "--set", f"{KEY}=0.02,0.01")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "Recorded 4 results" in answer.stdout
    assert " by learning rate, mean of 4 models: " in answer.stdout
    swept = results_table(copied, "gss_grid", "--set", f"{KEY}=0.01,0.02")
    assert [row[KEY] for row in swept] == ["0.01"] * 4 + ["0.02"] * 4
    columns = alone[0].keys() - {"name", "overrides"}
    assert [{key: row[key] for key in columns} for row in swept[4:]] == [
        {key: row[key] for key in columns} for row in alone
    ]
    frame = results("gss_grid", storage=copied, overrides={KEY: [0.02, 0.01]})
    assert list(frame.trial_id) == [row["trial_id"] for row in swept] and frame.group.nunique() == 8
    with pytest.raises(UserError, match="variants"):
        results("gss_grid", storage=copied, overrides={KEY: [0.02, 0.03]})
    page = Path(answer.stdout.split("Report: ")[1].splitlines()[0]).read_text(encoding="utf-8")
    of_grid = ">At learning rate {}: Correlation of Press rank and test perplexity".format
    parts = ('id="figure-by_learning_rate"', ">By learning rate</h2>", of_grid(0.01), of_grid(0.02))
    assert sorted(parts, key=page.index) == list(parts)
    retried = sweep("retry", *SMOKE, copied, "--set", f"{KEY}=0.01,0.02")
    assert "nothing to retry" in retried.stdout
