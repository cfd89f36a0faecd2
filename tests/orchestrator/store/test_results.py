from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from orchestrator.store import Store
from tests.support.store_rows import (
    KEY,
    RUN,
    SPECTRUM,
    epoch,
    everything,
    fail,
    ids,
    outcome,
    plan,
    ranked_epoch,
)

FIRST = dict.fromkeys(ids(plan(2)), 1)


@pytest.fixture
def trial_id(store: Store) -> str:
    trials = plan(2)
    store.register(KEY, trials)
    store.claim(ids(trials)[:1], owner="a", lease_s=600)
    return ids(trials)[0]


@pytest.fixture
def run_id(store: Store) -> int:
    return store.begin_run(RUN)


def test_outcome_round_trips_exactly(store: Store, trial_id: str, run_id: int) -> None:
    recorded = outcome(trial_id)
    assert store.record(recorded, run_id=run_id, spectrum=SPECTRUM) is True
    done, planned = store.results(KEY)
    metrics = recorded.measurements["perplexity@1"] | recorded.measurements["spectrum@1"]
    assert done == {**vars(store.trials(KEY)[0]), "metrics": metrics}
    expected = {"trial_id": trial_id, "state": "done", "attempt": 1, "owner": None}
    assert expected.items() <= done.items() and done["environment"] == recorded.environment
    assert done["started_at"] <= done["ended_at"]
    assert (planned["state"], planned["metrics"], planned["environment"]) == ("planned", {}, {})
    assert store.epochs(trial_id) == list(recorded.epochs)
    spectrum = store.spectra([trial_id])[trial_id]
    assert spectrum is not None and spectrum.dtype == np.float64
    assert spectrum.tobytes() == store.spectra(KEY)[trial_id].tobytes() == SPECTRUM.tobytes()
    assert [type(done["metrics"][name]) for name in ("full", "press_rank")] == [bool, int]


def test_done_trial_never_changes(store: Store, trial_id: str, run_id: int) -> None:
    store.record(outcome(trial_id), run_id=run_id, spectrum=SPECTRUM)
    before = everything(store)
    other = outcome(trial_id, epochs=1, environment={})
    assert store.record(other, run_id=run_id) is False
    assert store.record(outcome(trial_id, state="diverged"), run_id=run_id) is False
    assert fail(store, trial_id, cause="late news", run_id=run_id) is False
    store.record_epochs({trial_id: [epoch(2, valid_loss=9.0)]}, attempts=FIRST)
    assert store.add_measurement(trial_id, "spectrum@1", {"press_rank": 1}) is False
    assert store.claim([trial_id], owner="a", lease_s=1) == {}
    assert store.release("a", [trial_id]) == store.release("a") == 0
    assert store.reset([trial_id]) == []
    assert everything(store) == before


def test_failed_results_can_be_replaced(store: Store, trial_id: str, run_id: int) -> None:
    store.record_epochs({trial_id: [epoch(1)]}, attempts=FIRST)
    ended = outcome(trial_id, state="diverged", measurements={}, epochs=0)
    assert store.record(ended, run_id=run_id, attempt=1) is True
    row = store.trials(KEY)[0]
    assert (row.state, row.cause) == ("diverged", "the loss is not finite")
    assert store.epochs(trial_id) == [epoch(1)]
    values = np.array([3.0, 1 / 3], dtype=np.float32)
    assert store.record(outcome(trial_id), run_id=run_id, spectrum=values) is True
    assert store.trials(KEY)[0].cause is None
    np.testing.assert_array_equal(store.spectra(KEY)[trial_id], values.astype(np.float64))


def test_later_epochs_replace_earlier_ones(store: Store, trial_id: str, run_id: int) -> None:
    other = ids(plan(2))[1]
    elsewhere = plan(1, group="another study's")
    store.register(replace(KEY, scale="small"), elsewhere)
    store.claim([other, *ids(elsewhere)], owner="a", lease_s=600)
    attempts = {**FIRST, **dict.fromkeys(ids(elsewhere), 1)}
    rows = {trial_id: [epoch(1), ranked_epoch(3), epoch(2)], ids(elsewhere)[0]: [epoch(1)]}
    store.record_epochs(rows, attempts=attempts)
    again = {trial_id: [epoch(2, valid_loss=4.5)], other: [ranked_epoch(1)]}
    store.record_epochs(again, attempts=attempts)
    right = {
        trial_id: [epoch(1), epoch(2, valid_loss=4.5), ranked_epoch(3)],
        other: [ranked_epoch(1)],
    }
    assert store.epochs_by_trial(KEY) == right
    assert {name: store.epochs(name) for name in (trial_id, other)} == right
    store.record(outcome(trial_id, epochs=2), run_id=run_id)
    assert store.epochs(trial_id) == [epoch(1), epoch(2)], "an outcome replaces all epochs"


@pytest.mark.parametrize("spectrum", [np.array([1.0, math.nan]), np.ones((2, 2))])
def test_spectrum_needs_finite_numbers(
    store: Store, trial_id: str, run_id: int, spectrum: np.ndarray
) -> None:
    before = everything(store)
    with pytest.raises(ValueError, match="finite"):
        store.record(outcome(trial_id), run_id=run_id, spectrum=spectrum)
    assert everything(store) == before
    with pytest.raises(ValueError, match="finite"):
        outcome(trial_id, measurements={"spectrum@1": {"press_rank": math.inf}})


def test_measurement_is_added_once(store: Store, trial_id: str, run_id: int) -> None:
    with pytest.raises(ValueError, match="running"):
        store.add_measurement(trial_id, "top@1", {"hits": 3})
    store.record(outcome(trial_id), run_id=run_id)
    before = store.results(KEY)[0]["metrics"]
    assert store.add_measurement(trial_id, "top@1", {"hits": 3}, spectrum=SPECTRUM) is True
    assert store.add_measurement(trial_id, "top@1", {"hits": 4}) is False
    assert store.results(KEY)[0]["metrics"] == before | {"hits": 3}
    assert store.spectra(KEY)[trial_id].tobytes() == SPECTRUM.tobytes()
    assert store.add_measurement(trial_id, "spectrum@10", {"press_rank": 1}, spectrum=SPECTRUM)
    assert store.add_measurement(trial_id, "spectrum@9", {"press_rank": 2})
    assert store.results(KEY)[0]["metrics"]["press_rank"] == 1, "version 10 is later than version 9"
    for name, metrics, spectrum in (
        ("spectrum@11", {"press_rank": 9}, SPECTRUM[1:]),
        ("other@1", {"press_rank": 2}, None),
        ("other@1", {"new": math.nan}, None),
    ):
        with pytest.raises(ValueError, match=r"differs from that|in two|finite"):
            store.add_measurement(trial_id, name, metrics, spectrum=spectrum)
        assert store.unmeasured(KEY, [name]) == {trial_id: [name]}


NAMES = ["top_k-1a2b3c4d@1", "perplexity@1", "spectrum@2", "spectrum@1"]


def test_missing_measurements_are_listed(store: Store, run_id: int) -> None:
    trials, (other,) = ids(plan(6)), ids(plan(1, group="other"))
    store.register(KEY, plan(6))
    store.register(replace(KEY, corpus="ptb"), plan(1, group="other"))
    for trial_id in (*reversed(trials[:3]), other):
        store.record(outcome(trial_id), run_id=run_id)
    store.record(outcome(trials[3], measurements={}), run_id=run_id)
    store.record(outcome(trials[4], state="diverged"), run_id=run_id)
    store.add_measurement(trials[1], "top_k-1a2b3c4d@1", {"top": "{}"})
    store.add_measurement(trials[1], "spectrum@2", {"press_rank": 400})
    two = ["top_k-1a2b3c4d@1", "spectrum@2"]
    unmeasured = store.unmeasured(KEY, NAMES)
    assert list(unmeasured.items()) == [(trials[0], two), (trials[2], two), (trials[3], NAMES)]
    assert store.unmeasured(KEY, []) == {}
    assert store.unmeasured(replace(KEY, study="unknown"), NAMES) == {}


def test_results_are_the_studys_trials(store: Store, run_id: int) -> None:
    trials = plan(4)
    first, second, failed, other = ids(trials)
    variant = replace(KEY, corpus="ptb")
    store.register(KEY, trials[:3])
    store.register(variant, [trials[0], trials[3]])
    for number, trial_id in enumerate((first, second, other)):
        spectrum = None if trial_id == second else SPECTRUM * number
        ended = outcome(trial_id, environment={"torch": f"2.{number}"})
        store.record(ended, run_id=run_id, spectrum=spectrum)
    fail(store, failed, cause="the worker died", run_id=run_id)
    environments = [row["environment"] for row in store.results(KEY)]
    assert environments == [{"torch": "2.0"}, {"torch": "2.1"}, {}]
    assert [row["trial_id"] for row in store.results(variant)] == [first, other]
    assert list(store.spectra(KEY)) == [first] and not store.spectra([second])
    assert store.spectra(variant)[other].tolist() == list(SPECTRUM * 2)
    selection = [second, failed]
    assert store.results(KEY, selection) == [
        row for row in store.results(KEY) if row["trial_id"] in selection
    ]
    assert store.done() == sorted([first, second, other])
