"""`--set` with several values as a user types it: trials that are there already are taken, the
report compares."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator import results
from tests.support.command import results_table, sweep
from trainables.errors import UserError

KEY = "training.learning_rate"
SMOKE = ("gss_grid", "--scale", "smoke", "--max-concurrent", "1", "--storage")


@pytest.mark.usefixtures("one_ray")
def test_a_sweep_over_a_setting_takes_what_is_there_and_compares(tmp_path: Path) -> None:
    assert sweep(*SMOKE, tmp_path, "--set", f"{KEY}=0.01").returncode == 0
    alone = results_table(tmp_path, "gss_grid", "--set", f"{KEY}=0.01")
    answer = sweep(*SMOKE, tmp_path, "--set", f"{KEY}=0.02,0.01")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "8 trials: 4 to run, 4 already done" in answer.stdout
    assert "Test perplexity by learning rate, mean of 4 models: " in answer.stdout
    swept = results_table(tmp_path, "gss_grid", "--set", f"{KEY}=0.01,0.02")
    assert [row[KEY] for row in swept] == ["0.01"] * 4 + ["0.02"] * 4
    overrides = f'{{"settings":{{"{KEY}":[0.01,0.02]}}}}'
    named = [{**row, "name": f"{row['name']}, {KEY}=0.01", "overrides": overrides} for row in alone]
    assert named == [{name: row[name] for name in named[0]} for row in swept[:4]]
    frame = results("gss_grid", storage=tmp_path, overrides={KEY: [0.02, 0.01]})
    assert list(frame.trial_id) == [row["trial_id"] for row in swept] and frame.group.nunique() == 8
    with pytest.raises(UserError, match="see which variants it has"):
        results("gss_grid", storage=tmp_path, overrides={KEY: [0.02, 0.03]})
    status = sweep("status", "--storage", tmp_path, "--format", "csv").stdout
    assert '"{""settings"":{""training.learning_rate"":[0.01,0.02]}}",8,8,' in status
    page = Path(answer.stdout.split("Report: ")[1].splitlines()[0]).read_text(encoding="utf-8")
    lead, grids = (
        page.index('id="figure-by_learning_rate"'),
        ">At learning rate 0.0{}: Press rank and test perplexity",
    )
    first, second = (page.index(grids.format(digit)) for digit in (1, 2))
    assert lead < page.index(">By learning rate</h2>") < first < second
    assert (
        "nothing to retry" in sweep("retry", *SMOKE, tmp_path, "--set", f"{KEY}=0.01,0.02").stdout
    )
