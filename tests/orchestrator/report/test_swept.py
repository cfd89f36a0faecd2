from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from orchestrator.analysis import (
    BySetting,
    SweptNumbers,
    at_each_value,
    by_setting_requests,
    flatten,
    rows,
    swept_numbers,
    swept_settings,
)
from orchestrator.plan import PlanRequest, make_plan
from orchestrator.report.questions import Answer, StudyResults, answer
from orchestrator.report.sections.swept import swept_section
from search_spaces.awd_lstm import awd_lstm
from search_spaces.scales import SCALES
from search_spaces.study import Comparison, Correlation, GridMap, GroupTable, Spectra, Study
from tests.support.synthetic_results import report_on, trial_row
from trainables.config import GssConfig, TrialConfig

RATE, TOKENS = "training.learning_rate", "training.epoch_tokens"
STUDY = Study(
    name="swept",
    trials=lambda corpus: [
        awd_lstm(corpus, GssConfig(c=c, k=k)) for c in (-1.0, 1.0) for k in (1.5, 2.0)
    ],
    analyses=(
        Correlation(),
        GridMap(row="output_layer.c", column="output_layer.k"),
        GroupTable(metrics=("test_perplexity",)),
        Comparison(baselines={"gss c=1 k=2": "gss c=-1 k=2"}),
        lambda results: f"mean {results.test_perplexity.mean()} of {sorted(results.group)}",
    ),
)


def records(**settings: Any) -> tuple[Any, list[dict[str, Any]]]:
    plan = make_plan(STUDY, SCALES["smoke"], "pydocs", PlanRequest(settings=settings, seeds=3))
    results = []
    for trial in plan.trials:
        number = int(trial.trial_id[:6], 16) / 0xFFFFFF
        metrics = {"press_rank": round(20 + 80 * number), "test_perplexity": 100 + 50 * number**2}
        results.append(trial_row(trial.name, config=trial.config, **metrics))
        results[-1]["trial_id"] = trial.trial_id
    return plan, results


def answers(**settings: Any) -> list[Answer]:
    plan, results = records(**settings)
    frame = flatten(results).frame()
    return list(answer(StudyResults(study=STUDY, key=plan.key, frame=frame, spectra={}, epochs={})))


def test_swept_value_reads_like_single_value() -> None:
    by_rate, *swept = answers(**{RATE: (0.001, 0.01)})
    count = len(STUDY.analyses)
    assert len(swept) == 2 * count
    assert isinstance(by_rate.numbers, SweptNumbers)
    for index, rate in enumerate((0.001, 0.01)):
        alone = answers(**{RATE: (rate,)})
        for entry, single in zip(swept[index * count : (index + 1) * count], alone, strict=True):
            assert entry.section.heading == f"At learning rate {rate}: {single.section.heading}"
            if isinstance(entry.request, Comparison):
                continue  # p values are corrected over all swept values
            assert [table.body for table in entry.section.texts] == [
                table.body for table in single.section.texts
            ]
            for written, expected in zip(
                entry.section.written.values(), single.section.written.values(), strict=True
            ):
                assert written.to_csv(index=False) == expected.to_csv(index=False)
            assert list(entry.section.sentences) == [
                f"At learning rate {rate}: {text}" for text in single.section.sentences
            ]
            assert entry.section.claim == single.section.claim
    assert len({answered.section.kind for answered in swept}) == len(swept)


def test_means_and_intervals_match_trials() -> None:
    swept: dict[str, Any] = {RATE: (0.001, 0.01), TOKENS: (None, 400)}
    _, results = records(**swept)
    numbers = answers(**swept)[1].numbers
    assert isinstance(numbers, SweptNumbers) and numbers.request.key == RATE
    assert numbers.values == (0.001, 0.01)
    lines = list(rows(numbers.means[numbers.means["metric"] == "test_perplexity"]))
    assert [line.group for line in lines[:2]] == ["gss c=-1 k=1.5, epoch tokens none"] * 2
    for line in lines:
        name, _, tokens = line.group.rpartition(", epoch tokens ")
        values = [
            row["metrics"]["test_perplexity"]
            for row in results
            if row["name"].startswith(f"{name}, ")
            and row["config"]["training"]["learning_rate"] == line.value
            and str(row["config"]["training"]["epoch_tokens"]).lower() == tokens
        ]
        assert len(values) == line.trials == line.done == 3
        low, high = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
        assert (line.mean, line.low, line.high) == pytest.approx((np.mean(values), low, high))
    assert len(lines) == len(numbers.compared("test_perplexity")) == 16


def test_one_value_is_no_sweep() -> None:
    lists = ([0.1, 0.2], [0.3], None)
    frame = flatten(
        [trial_row(f"{i}", config={"rates": rates}) for i, rates in enumerate(lists)]
    ).frame()
    assert swept_settings(frame[:1], '{"settings":{"rates":[[0.1,0.2]]}}')[0] == ()
    assert [swept_settings(frame, text)[0] for text in ("", "[1]", '{"settings":{"x":[1,2]}}')] == [
        ()
    ] * 3
    keys, values = swept_settings(
        frame, '{"settings":{"rates":[[0.1,0.2],[0.3],null],"other":[1,2]}}'
    )
    assert keys == ("rates",) and list(values["rates"]) == ["[0.1, 0.2]", "[0.3]", "none"]


@pytest.mark.parametrize(
    ("perplexities", "finding"),
    [
        ({5: 90.0, 10: 80.0, 20: 70.0}, "largest one tried: try larger values"),
        ({5: 70.0, 10: 80.0, 20: 90.0}, "smallest one tried: try smaller values"),
        ({0: 70.0, 10: 80.0, 20: 90.0}, ""),
        ({5: 90.0, 10: 70.0, 20: 80.0}, ""),
        ({5: 70.0, 10: 70.0}, ""),
        ({"sgd": 90.0, "adam": 80.0}, ""),
        ({False: 90.0, True: 80.0}, ""),
    ],
)
def test_best_value_at_end_is_reported(perplexities: dict[Any, float], finding: str) -> None:
    """A lower rank is not better, so the report names a best value only for perplexity."""
    rows = [
        trial_row(
            f"a, x={x}", config={"x": x}, valid_perplexity=perplexity, press_rank=round(perplexity)
        )
        for x, perplexity in perplexities.items()
    ]
    numbers = swept_numbers(
        flatten(rows).frame(), BySetting(key="x", metrics=("valid_perplexity", "press_rank"))
    )
    by_perplexity, by_rank = swept_section(numbers).sentences
    assert "tried" not in by_rank and by_perplexity.partition(" The best value is the ")[2] == (
        finding and f"{finding}."
    )


def test_validation_chooses_not_the_test() -> None:
    perplexities = {5: (90.0, 70.0), 10: (80.0, 75.0), 20: (70.0, 80.0)}
    rows = [
        trial_row(f"a, x={x}", config={"x": x}, valid_perplexity=valid, test_perplexity=test)
        for x, (valid, test) in perplexities.items()
    ]
    frame = flatten(rows).frame()
    [request] = by_setting_requests(STUDY, ["x"], frame)
    assert request.metrics == ("valid_perplexity", "test_perplexity")
    by_valid, by_test = swept_section(swept_numbers(frame, request)).sentences
    assert "lowest at 20" in by_valid and "try larger" in by_valid
    assert "70.00 at 5" in by_test and "lowest" not in by_test and "try" not in by_test


def test_one_family_covers_all_values() -> None:
    comparisons = [
        line
        for answered in answers(**{RATE: (0.001, 0.01, 0.1)})
        if isinstance(answered.request, Comparison)
        for line in rows(answered.numbers.comparisons)
    ]
    p_values = [line.difference_p for line in comparisons]
    order = np.argsort(p_values)
    by_hand = np.minimum(1.0, np.maximum.accumulate(np.sort(p_values) * [3, 2, 1]))
    assert len(comparisons) == 3
    assert [comparisons[index].holm_p for index in order] == pytest.approx(list(by_hand))


def test_mixed_trial_kinds_are_swept() -> None:
    """A trial that does not have the swept setting belongs to every value of this setting."""
    results = [trial_row(f"a, x={x}", config={"x": x}) for x in (1, 2)]
    results += [trial_row(f"b, y={y}", config={"y": y}) for y in (3, 4)]
    keys, frame = swept_settings(flatten(results).frame(), '{"settings":{"x":[1,2],"y":[3,4]}}')
    names = {tuple(values.values()): list(at["name"]) for values, at in at_each_value(frame, keys)}
    assert names == {(x, y): [f"a, x={x}", f"b, y={y}"] for x in (1, 2) for y in (3, 4)}
    measured = frame.assign(state="done", m=1.0)
    numbers = swept_numbers(measured, BySetting(key="x", others=("y",), metrics=("m",)))
    assert [(line.group, line.value) for line in rows(numbers.means)] == [("a", 1), ("a", 2)]


def test_non_numeric_values_are_drawn(tmp_path: Path) -> None:
    study = Study(
        name="many",
        trials=lambda corpus: [awd_lstm(corpus, GssConfig(c=0.0, k=1 + i / 20)) for i in range(12)],
        analyses=(Spectra(),),
        corner=list,
    )
    settings = {"training.optimizer": ("sgd", "adam")}
    plan = make_plan(study, SCALES["smoke"], "pydocs", PlanRequest(settings=settings))
    rows = [
        trial_row(trial.name, config=trial.config, valid_perplexity=50.0 + i)
        | {"trial_id": trial.validated.trial_id}
        for i, trial in enumerate(plan.trials)
        if isinstance(trial.validated, TrialConfig)
    ]
    rows[-1] |= {"state": "failed", "metrics": {}}
    result = report_on(rows, tmp_path, study=study, key=plan.key)
    (first,) = result.answers[0].section.sentences
    assert first.startswith(
        "Validation perplexity by optimizer, mean of 11 models: 55.00 at sgd, 67.00 at adam; "
        "lowest at sgd"
    )
    assert (tmp_path / "by_optimizer.svg").is_file()
