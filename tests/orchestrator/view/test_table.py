"""A table that is kept up with equals one that is read anew."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from orchestrator.analysis.frames import flatten
from orchestrator.store.opening import open_store
from orchestrator.store.store import Store
from orchestrator.view import table as table_module
from orchestrator.view.source import Source
from orchestrator.view.table import StudyTable, read_table
from tests.support.store_rows import KEY, RUN, ids, outcome, plan
from trainables.errors import UserError
from trainables.trial_folder.outcome import FinalState


def shown(table: StudyTable) -> object:
    return table.ids, table.names, {name: list(values) for name, values in table.columns.items()}


@pytest.mark.parametrize("most", [0, 1, 1000])
def test_whatever_ends_in_between(store: Store, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(table_module, "MOST_CHANGES", most)
    monkeypatch.setattr(table_module, "PART", 5)
    draws, trials = random.Random(most), plan(12)
    store.register(KEY, trials)
    run_id = store.begin_run(RUN)
    store.claim(ids(trials), owner="a", lease_s=60)
    table = read_table(store, KEY, None)
    left = ids(trials)
    draws.shuffle(left)
    while left:
        for _ in range(draws.randint(0, 3)):
            if left:
                state: FinalState = draws.choice(("done", "failed", "diverged"))
                metrics = {
                    "perplexity@1": {"test_perplexity": draws.random()},
                    f"m{len(left)}@1": {f"m{len(left)}": 1},
                }
                end = outcome(left.pop(), state=state, measurements=metrics)
                assert store.record(end, run_id=run_id, spectrum=None, attempt=1)
        table = read_table(store, KEY, table)
        assert shown(table) == shown(read_table(store, KEY, None))
    assert read_table(store, KEY, table) is table
    store.reset(ids(trials))
    store.register(KEY, plan(14)[1:])
    assert shown(read_table(store, KEY, table)) == shown(read_table(store, KEY, None))


def test_done_trials_with_a_perplexity_above_the_vocabularys_size_are_named(store: Store) -> None:
    trials = plan(4)
    store.register(KEY, trials)
    run_id = store.begin_run(RUN)
    store.claim(ids(trials), owner="a", lease_s=60)
    for trial, perplexity in zip(trials, (1e18, 299.0, 301.0), strict=False):
        measured = {
            "perplexity@1": {"test_perplexity": perplexity},
            "spectrum@1": {"rank_columns": 300},
        }
        store.record(outcome(trial.trial_id, measurements=measured), run_id=run_id, spectrum=None)
    assert read_table(store, KEY, None).worse_than_uniform == (trials[0].name, trials[2].name)


def test_parts_make_the_same_table(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = plan(7)
    store.register(KEY, trials)
    run_id = store.begin_run(RUN)
    store.claim(ids(trials), owner="a", lease_s=60)
    for place in (1, 4, 6):
        store.record(
            outcome(trials[place].trial_id, measurements={f"m{place}@1": {f"m{place}": place}}),
            run_id=run_id,
            spectrum=None,
        )
    flat = flatten(store.results(KEY))
    for part in (1, 2, 3, 7, 500):
        monkeypatch.setattr(table_module, "PART", part)
        table = read_table(store, KEY, None)
        assert tuple(table.settings) == flat.varying and tuple(table.metrics) == flat.metric_columns
        for name, values in table.columns.items():
            assert list(values) == [record[name] for record in flat.records]


def test_numbers_are_those_of_the_trials_and_nan_where_there_is_none(store: Store) -> None:
    trials = plan(3)
    store.register(KEY, trials)
    run_id = store.begin_run(RUN)
    store.claim(ids(trials), owner="a", lease_s=60)
    store.record(outcome(trials[1].trial_id), run_id=run_id, spectrum=None)
    table = read_table(store, KEY, None)
    assert set(table.numeric) == {"seed", "test_perplexity", "kept_epoch", "press_rank"}
    assert np.array_equal(table.numbers("press_rank"), [np.nan, 402, np.nan], equal_nan=True)
    assert list(table.numbers("seed")) == [0, 1, 2]


def test_a_part_of_a_table_has_the_same_rows(store: Store) -> None:
    store.register(KEY, plan(4))
    table = read_table(store, KEY, None)
    part = table.only([3, 1])
    assert {name: list(values) for name, values in part.columns.items()} == {
        name: [values[3], values[1]] for name, values in table.columns.items()
    }
    assert part.ids == (table.ids[3], table.ids[1]) and part.versions == {
        name: table.versions[name] for name in part.ids
    }
    assert table.only([0, 1, 2, 3]) is table and table.only([]).ids == ()


def test_a_store_that_is_away_is_said_and_opened_again_when_it_is_back(tmp_path: Path) -> None:
    path, away = tmp_path / "results.db", tmp_path / "away"
    with open_store(str(path)) as store:
        store.register(KEY, plan(2))
    source = Source(str(path), str(tmp_path))
    source.overview()
    path.rename(away)
    for _ in range(2):
        source._overview.read_s = float("-inf")
        with pytest.raises(UserError, match=r"results\.db"):
            source.overview()
    away.rename(path)
    with pytest.raises(UserError, match=r"results\.db"):
        source.overview()  # several viewers share the answer, whatever it is
    source._overview.read_s = float("-inf")
    assert [summary.key for summary in source.overview().studies] == [KEY]
    assert source.key(KEY.variant) == KEY
    with pytest.raises(UserError, match="no study 'x'"):
        source.key("x")
    with pytest.raises(UserError, match="no trials whose id begins"):
        source.trial("zz")
    with pytest.raises(UserError, match="no trials whose id begins with ''"):
        source.trial("")
