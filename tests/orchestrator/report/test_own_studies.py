"""Reports of users' own studies: the metric has a direction and a unit, and no text or paper."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.report import ReportResult
from orchestrator.store import StudyKey
from search_spaces.study import Comparison, GroupTable, Lines, Study
from tests.support.synthetic_results import report_on, trial_row
from trainables.config import Command

KEY = StudyKey(study="digits", scale="full", corpus="none")
TRIALS = [Command(["train", "{width}"], width=width) for width in (16, 64, 256)]
SCORES = {
    "width=16": [0.90, 0.91, 0.93, 0.92, 0.92],
    "width=64": [0.94, 0.95, 0.95, 0.96, 0.95],
    "width=256": [0.97, 0.98, 0.99, 0.98, 0.98],
}


def own_rows(*, sign: int = 1, metric: str = "score", **others: Any) -> list[dict[str, Any]]:
    return [
        trial_row(
            f"{group} seed={seed}",
            config={"seed": seed, "width": int(group.partition("=")[2]), "activation": group[-2:]},
            **{metric: sign * score, "peak_memory_mib": 1.0, "wall_seconds": 1.0, **others},
        )
        for group, scores in SCORES.items()
        for seed, score in enumerate(scores)
    ]


def own_study(mode: Any, *analyses: Any, **fields: Any) -> Study:
    fields |= {"analyses": analyses} if analyses else {}
    return Study(name="digits", trials=lambda: TRIALS, metric="score", mode=mode, **fields)


def report(
    out: Path, study: Study, rows: list[dict[str, Any]], key: StudyKey = KEY
) -> tuple[ReportResult, dict[str, Any], str]:
    result = report_on(rows, out, study=study, key=key)
    page = re.sub(r"(?s)<(style|script|svg).*?</\1>", "", result.path.read_text())
    return result, json.loads((out / "summary.json").read_text()), page


def sentences(card: dict[str, Any]) -> str:
    return " ".join(finding["sentence"] for finding in card["findings"])


def test_direction_mirrors_all_sentences(tmp_path: Path) -> None:
    """The scores with the other sign are losses: the same setting is best, by the same amount."""
    comparison = Comparison(baseline="width=64")
    _, high, page = report(tmp_path / "max", own_study("max", comparison), own_rows())
    _, low, _ = report(tmp_path / "min", own_study("min", comparison), own_rows(sign=-1))
    assert high["answer"].startswith("width=256 has the highest score (mean 0.9800 over 5 seeds), ")
    assert "better than width=64 (by 0.030" in high["answer"]
    swaps = {"highest": "lowest", "higher": "lower", "lower": "higher"}
    mirrored = re.sub("highest|higher|lower", lambda word: swaps[word[0]], sentences(high))
    mirrored = mirrored.replace("mean 0", "mean \N{MINUS SIGN}0")
    assert sorted(re.split(r"[.] |[.]$", mirrored)) == sorted(
        re.split(r"[.] |[.]$", sentences(low))
    )
    assert "lower (worse) score than width=64" in sentences(high)
    assert "(positive: better)" in page
    assert high["question"] == "Which setting has the highest score?"


def test_baseline_may_be_best(tmp_path: Path) -> None:
    study = own_study("max", Comparison(baseline="width=256"), unit="%")
    _, card, page = report(tmp_path, study, own_rows())
    assert "better than width=16 (by 0.0640 %" in card["answer"]
    assert "and width=64 (by" in card["answer"]
    assert "Differences in score (%)" in page


def test_close_second_is_named(tmp_path: Path) -> None:
    rows = own_rows()
    for row in rows:
        if row["name"].startswith("width=64"):
            row["metrics"]["score"] = 0.98 + 0.001 * (row["config"]["seed"] % 2)
    _, card, _ = report(tmp_path, own_study("max", Comparison(baseline="width=16")), rows)
    assert "Next is width=256" in card["answer"]
    assert "Which of these two is better is not shown" in card["answer"]


def test_default_questions_answer(tmp_path: Path) -> None:
    study = own_study("max")
    assert study.analyses == (Comparison(metric="score"), GroupTable(metrics=("score",)))
    _, card, page = report(tmp_path, study, own_rows(note="<b>", converged=True))
    assert "better than" in card["answer"] and "width=16" in card["answer"]
    assert not re.search(r"paper|perplexity|published|corpus|\bmodels?\b", page)


@pytest.mark.parametrize("x", ["width", "activation"])
def test_one_line_without_by(x: str, tmp_path: Path) -> None:
    result, _, page = report(tmp_path, own_study("max", Lines(x=x), unit="%"), own_rows())
    [answer, *_] = result.answers
    means = [(row.x, row.mean) for row in answer.numbers.points.itertuples()]
    positions = [16, 64, 256] if x == "width" else ["16", "64", "56"]
    assert [one for one, _ in means] == positions
    assert [mean for _, mean in means] == pytest.approx([0.916, 0.95, 0.98])
    assert f"Score (%) against {x}." in page and "0.916 [0.900, 0.930]" in page


@pytest.mark.parametrize("value", [None, "high"])
def test_missing_metric_is_one_sentence(value: str | None, tmp_path: Path) -> None:
    others: dict[str, Any] = {} if value is None else {"score": value}
    rows = own_rows(metric="acc", loss=1.0, **others)
    result, card, page = report(tmp_path, own_study("max"), rows)
    names = "acc, loss" if value is None else "acc, loss, score"
    number = "" if value is None else "a number as "
    sentence = (
        f"No trial reported {number}the metric 'score'. They reported: {names}. Correct `metric`."
    )
    assert card["answer"] == sentence and len(result.answers) == 1
    assert "No trial reported" in page


def test_swept_setting_has_its_best_value(tmp_path: Path) -> None:
    key = replace(KEY, overrides='{"settings":{"epochs":[1,2,4]}}')
    rows = [
        trial_row(
            f"width=16, epochs={epochs} seed={seed}",
            config={"seed": seed, "width": 16, "epochs": epochs},
            score=0.9 + 0.01 * epochs,
        )
        for epochs in (1, 2, 4)
        for seed in (1, 2)
    ]
    for mode, best, hint in (("max", "highest at 4", "larger"), ("min", "lowest at 1", "smaller")):
        _, card, _ = report(tmp_path / mode, own_study(mode), rows, key)
        assert best in card["answer"] and f"try {hint} values" in card["answer"]
