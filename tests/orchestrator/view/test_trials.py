from __future__ import annotations

import math
import random
from typing import Any

import pandas as pd
import pytest

from orchestrator.analysis import flatten
from orchestrator.store import Store
from orchestrator.view import trials as trials_module
from orchestrator.view.trials import StudyTrials, read_trials
from tests.support.store_rows import KEY, RUN, ids, outcome, plan


def end(store: Store, trial_id: str, run_id: int, **metrics: Any) -> None:
    measurements = {f"{name}@1": {name: value} for name, value in metrics.items()}
    ended = outcome(trial_id, measurements=measurements)
    assert store.record(ended, run_id=run_id, spectrum=None, attempt=1)


def begin(store: Store, count: int) -> int:
    store.register(KEY, plan(count))
    store.claim(ids(plan(count)), owner="a", lease_s=60)
    return store.begin_run(RUN)


def assert_equal(trials: StudyTrials, expected: StudyTrials) -> None:
    columns = [*trials.settings, *trials.metrics]
    assert columns == [*expected.settings, *expected.metrics]
    assert (trials.shape, trials.numbers) == (expected.shape, expected.numbers)
    names = ["name", "state", "attempt", "cause", *columns]
    pd.testing.assert_frame_equal(trials.frame[names], expected.frame[names], check_dtype=False)


@pytest.mark.parametrize("at_once", [2, 1000])
def test_later_reads_equal_fresh_ones(
    store: Store, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(trials_module, "READ_AT_ONCE", at_once)
    run_id, draws = begin(store, 12), random.Random(at_once)
    trials, open_ids = read_trials(store, KEY), ids(plan(12))
    draws.shuffle(open_ids)
    while open_ids:
        for _ in range(min(len(open_ids), draws.randint(0, 3))):
            end(
                store,
                open_ids.pop(),
                run_id,
                test_perplexity=draws.random(),
                **{f"m{len(open_ids)}": 1},
            )
        trials = read_trials(store, KEY, trials)
        assert_equal(trials, read_trials(store, KEY))
    assert read_trials(store, KEY, trials) is trials
    store.reset(ids(plan(12)))
    store.register(KEY, plan(14)[1:])
    assert_equal(read_trials(store, KEY, trials), read_trials(store, KEY))
    store.register(KEY, [])
    assert read_trials(store, KEY, trials).frame.empty


def test_columns_equal_results_command(store: Store) -> None:
    run_id = begin(store, 3)
    long = "a long text, which is data " * 5
    end(store, ids(plan(3))[1], run_id, press_rank=402, method="gram", note=long)
    trials, flat = read_trials(store, KEY), flatten(store.results(KEY))
    assert tuple(trials.settings) == flat.varying and tuple(trials.metrics) == flat.metric_columns
    assert trials.numbers == ["seed", "press_rank"] and "note" not in trials.short_metrics
    for name in (*trials.settings, *trials.metrics):
        expected = [record[name] for record in flat.records]
        assert (
            trials.frame[name].astype(object).where(trials.frame[name].notna(), None).tolist()
            == expected
        )


def test_mixed_settings_are_texts() -> None:
    frame = pd.DataFrame({"a": [True, 1], "b": [[0.1], "auto"], "c": [None, 2], "d": [True, False]})
    plain = trials_module._unify_columns(frame)
    assert plain["a"].tolist() == ["True", "1"] and plain["b"].tolist() == ["[0.1]", "auto"]
    assert math.isnan(plain["c"][0]) and plain["c"][1] == 2
    assert plain["d"].tolist() == ["True", "False"]
