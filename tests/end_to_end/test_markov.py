"""Generated languages as a user types them."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import ROOT, sweep
from tests.support.one_ray import without_ray


@pytest.mark.usefixtures("one_ray")
def test_rank_metrics_on_a_language_of_rank_20_from_the_plan_to_the_page(tmp_path: Path) -> None:
    typed = ("rank_metrics", "--corpus", "markov-20", "--scale", "smoke", "--max-concurrent", "1",
             "--set", "evaluation.rank_contexts=1000")  # fmt: skip
    answer = sweep(*typed, "--storage", tmp_path)
    assert answer.returncode == 0, answer.stdout[-2000:] + answer.stderr
    assert "7 trials: 7 to run, 0 already done." in answer.stdout
    assert "The true log-P matrix of this language has rank 20; the rows measured" in answer.stdout
    assert (
        "Of the exact matrix (float64), the true rank, 20, is found by Press rank (float64)"
        in answer.stdout
    )
    shown = sweep(
        "results", "rank_metrics", "--corpus", "markov-20", "--storage", tmp_path, "--format", "csv"
    )
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(shown.stdout))}
    assert {row["state"] for row in rows.values()} == {"done"}
    floor = float(rows["truth float64 seed=1"]["test_perplexity"])
    assert rows["truth float64 seed=1"]["press_rank"] == "20"
    models = [row for name, row in rows.items() if not name.startswith("truth")]
    assert len(models) == 4 and all(float(row["test_perplexity"]) > floor for row in models)
    with without_ray():
        again = sweep(*typed, "--storage", tmp_path)
    assert again.returncode == 0 and "7 trials: 0 to run, 7 already done." in again.stdout


def test_a_plan_imports_neither_torch_nor_ray_and_one_language_has_one_name() -> None:
    program = (
        "import sys; from orchestrator.command.app import main;"
        "status = main(['rank_metrics', '--corpus', 'markov-100', '--dry-run', '--format', "
        "'json']);"
        "print(sorted({'torch', 'ray', 'scipy', 'pandas'} & set(sys.modules)), file=sys.stderr); "
        "sys.exit(status)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stderr.strip() == "[]"
    planned = json.loads(run.stdout)
    assert len(planned) == 9
    assert {trial["corpus"] for trial in planned} == {"markov"}


def test_a_language_is_checked_and_not_fetched() -> None:
    checked, fetched = sweep("corpus", "check", "markov"), sweep("corpus", "fetch", "markov")
    assert checked.returncode == 0
    assert "vocabulary 1,000; the rank of log P is 100." in checked.stdout
    assert fetched.returncode == 2
    assert "built in, with nothing to download" in fetched.stderr
