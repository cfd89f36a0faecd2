from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import fmean

import pytest

from tests.support.command import ROOT, results_table, sweep

EXAMPLES = ROOT / "examples"
WIDTH, VOCABULARY = 24, 500
"""Sizes of the convolution in examples/own_language_model.py."""

pytestmark = pytest.mark.usefixtures("one_ray")


def results_of(example: str, storage: Path) -> list[dict[str, str]]:
    words = (EXAMPLES / example, "--scale", "smoke", "--storage", storage)
    answer = sweep(*words, "--max-concurrent", "2")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    rows = results_table(storage, str(EXAMPLES / example), "--scale", "smoke")
    assert {row["state"] for row in rows} == {"done"}
    return rows


def test_digits_are_counted_in_899(tmp_path: Path) -> None:
    rows = results_of("digits.py", tmp_path)
    accuracies: dict[str, list[float]] = {"4": [], "16": [], "64": []}
    for row in rows:
        accuracies[row["width"]].append(float(row["test_accuracy"]))
    assert all(len(values) == 5 for values in accuracies.values())
    for correct in (899 * value for values in accuracies.values() for value in values):
        assert correct == pytest.approx(round(correct), abs=1e-3)
    assert fmean(accuracies["64"]) > 2 * fmean(accuracies["4"]) > 0.2


def test_command_prints_what_is_recorded(tmp_path: Path) -> None:
    rows = results_of("command/study.py", tmp_path)
    assert len(rows) == 15
    for row in rows[::7]:
        words = ["--rate", row["rate"], "--epochs", row["epochs"], "--seed", row["seed"]]
        printed = subprocess.run(
            [sys.executable, EXAMPLES / "command/train.py", *words],
            capture_output=True,
            text=True,
            check=True,
        )
        *epochs, final = map(json.loads, printed.stdout.splitlines())
        assert [epoch["epoch"] for epoch in epochs] == [0, 1]
        assert float(row["final_loss"]) == pytest.approx(final["final_loss"])
        assert float(row["slope"]) == pytest.approx(final["slope"])


def test_search_finds_what_sklearn_computes(tmp_path: Path) -> None:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.svm import SVC

    rows = results_of("sklearn_search.py", tmp_path)
    assert len({(row["c"], row["gamma"]) for row in rows}) >= 3
    for row in rows:
        train_x, test_x, train_y, test_y = train_test_split(
            *load_digits(return_X_y=True), train_size=100, random_state=int(row["seed"])
        )
        machine = SVC(C=float(row["c"]), gamma=float(row["gamma"])).fit(train_x, train_y)
        hits = (machine.predict(test_x) == test_y).mean()
        assert float(row["accuracy"]) == pytest.approx(hits)


def test_convolution_has_rank_of_softmax(tmp_path: Path) -> None:
    rows = results_of("own_language_model.py", tmp_path)
    assert len(rows) == 6
    for row in rows:
        assert 1 < float(row["test_perplexity"]) < VOCABULARY
        if row["name"].startswith("softmax "):
            assert int(row["press_rank"]) == WIDTH + 2
