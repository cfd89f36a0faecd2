from __future__ import annotations

from pathlib import Path

from tests.support.command import results_table, sweep
from tests.support.one_ray import without_ray
from tests.support.smoke_trials import smoke_plan, train_here


def test_page_shows_true_rank(tmp_path: Path) -> None:
    typed = ("rank_metrics", "--corpus", "markov-20", "--scale", "smoke",
             "--set", "evaluation.rank_contexts=1000", "--storage", tmp_path)  # fmt: skip
    settings = {"evaluation.rank_contexts": (1000,)}
    train_here(tmp_path, smoke_plan("rank_metrics", "markov-20", settings=settings))
    with without_ray():
        answer = sweep(*typed)
    assert answer.returncode == 0, answer.stdout[-2000:] + answer.stderr
    assert "The true log-P matrix of this language has rank 20" in answer.stdout
    table = results_table(tmp_path, "rank_metrics", "--corpus", "markov-20")
    rows = {row["name"]: row for row in table}
    assert {row["state"] for row in table} == {"done"}
    truth = rows["truth float64 seed=1"]
    assert truth["press_rank"] == "20"
    models = [row for name, row in rows.items() if not name.startswith("truth")]
    floor = float(truth["test_perplexity"])
    assert len(models) == 4 and all(float(row["test_perplexity"]) > floor for row in models)


def test_generated_language_is_not_fetched() -> None:
    checked, fetched = sweep("corpus", "check", "markov"), sweep("corpus", "fetch", "markov")
    assert checked.returncode == 0 and "the rank of log P is 100." in checked.stdout
    assert fetched.returncode == 2 and "corpus check" in fetched.stderr
