"""What trials come to, written and read."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from sqlalchemy import create_engine, text

from orchestrator.store import Store
from tests.support.store_rows import KEY, RUN, SPECTRUM, epoch, ids, outcome, plan, ranked_epoch
from trainables.trial_folder.outcome import EpochMetrics, TrialOutcome

FIRST = dict.fromkeys(ids(plan(2)), 1)
"""Both trials in the attempt for which they are claimed first."""


@pytest.fixture
def trial_id(store: Store) -> str:
    """A running trial."""
    trials = plan(2)
    store.register(KEY, trials)
    store.claim(ids(trials)[:1], owner="a", lease_s=600)
    return ids(trials)[0]


@pytest.fixture
def run_id(store: Store) -> int:
    """A run."""
    return store.begin_run(RUN)


def everything(store: Store, trial_id: str) -> tuple[object, ...]:
    """All that the store says about a trial."""
    return (
        [row for row in store.trials(KEY) if row.trial_id == trial_id],
        [row for row in store.results(KEY) if row["trial_id"] == trial_id],
        store.epochs(trial_id),
        {name: values.tobytes() for name, values in store.spectra(KEY).items()},
        store.environments(KEY),
    )


def test_a_recorded_outcome_comes_back_bit_for_bit(
    store: Store, trial_id: str, run_id: int
) -> None:
    recorded = outcome(trial_id)
    assert store.record(recorded, run_id=run_id, spectrum=SPECTRUM) is True
    done, planned = store.results(KEY)
    metrics = recorded.measurements["perplexity@1"] | recorded.measurements["spectrum@1"]
    assert done == {**vars(store.trials(KEY)[0]), "metrics": metrics}
    assert (done["trial_id"], done["state"], done["attempt"], done["owner"]) == (
        trial_id,
        "done",
        1,
        None,
    )
    assert (planned["state"], planned["metrics"]) == ("planned", {})
    assert store.epochs(trial_id) == list(recorded.epochs)
    assert store.environments(KEY) == {trial_id: recorded.environment}
    spectrum = store.spectra(KEY)[trial_id]
    assert spectrum.dtype == np.float64
    np.testing.assert_array_equal(spectrum, SPECTRUM)
    assert type(done["metrics"]["full"]) is bool
    assert type(done["metrics"]["press_rank"]) is int


def test_a_done_trial_never_changes(store: Store, trial_id: str, run_id: int) -> None:
    store.record(outcome(trial_id), run_id=run_id, spectrum=SPECTRUM)
    before = everything(store, trial_id)
    assert (
        store.record(outcome(trial_id, epochs=1, environment={}), run_id=run_id, spectrum=None)
        is False
    )
    assert store.record(outcome(trial_id, state="diverged"), run_id=run_id, spectrum=None) is False
    assert store.fail(trial_id, cause="late news", run_id=run_id) is False
    store.record_epochs({trial_id: [epoch(2, valid_loss=9.0)]}, attempts=FIRST)
    assert store.add_measurement(trial_id, "spectrum@1", {"press_rank": 1}) is False
    assert store.claim([trial_id], owner="a", lease_s=1) == {}
    assert store.release("a", [trial_id]) == store.release("a") == 0
    assert store.reset([trial_id]) == []
    assert everything(store, trial_id) == before


def test_other_ends_have_a_cause_and_give_way_to_done(
    store: Store, trial_id: str, run_id: int
) -> None:
    store.record_epochs({trial_id: [epoch(1)]}, attempts=FIRST)
    ended = outcome(trial_id, state="diverged", measurements={}, epochs=0)
    assert store.record(ended, run_id=run_id, spectrum=None, attempt=1) is True
    row = store.trials(KEY)[0]
    assert (row.state, row.cause, row.owner, row.lease_until) == (
        "diverged",
        "the loss is not finite",
        None,
        None,
    )
    assert store.epochs(trial_id) == [epoch(1)]
    values = np.array([3.0, 1 / 3], dtype=np.float32)
    assert store.record(outcome(trial_id), run_id=run_id, spectrum=values) is True
    assert (store.trials(KEY)[0].state, store.trials(KEY)[0].cause) == ("done", None)
    np.testing.assert_array_equal(store.spectra(KEY)[trial_id], values.astype(np.float64))


def test_later_epochs_replace_earlier_ones(store: Store, trial_id: str) -> None:
    store.claim(ids(plan(2))[1:], owner="a", lease_s=600)
    store.record_epochs({trial_id: [epoch(1), epoch(2), epoch(3)]}, attempts=FIRST)
    store.record_epochs(
        {trial_id: [epoch(2, valid_loss=4.5), epoch(3)], ids(plan(2))[1]: [epoch(1)]},
        attempts=FIRST,
    )
    assert store.epochs(trial_id) == [epoch(1), epoch(2, valid_loss=4.5), epoch(3)]
    assert store.epochs(ids(plan(2))[1]) == [epoch(1)]
    store.record(outcome(trial_id, epochs=2), run_id=store.begin_run(RUN), spectrum=None)
    assert store.epochs(trial_id) == [epoch(1), epoch(2)], (
        "an outcome's epochs are all that there are"
    )


def test_epochs_of_a_study_come_by_trial_and_in_order_with_their_ranks_where_they_have_some(
    store: Store, trial_id: str
) -> None:
    other = ids(plan(2))[1]
    elsewhere = plan(1, group="another study's")
    store.register(replace(KEY, scale="small"), elsewhere)
    attempts = store.claim([trial_id, other, *ids(elsewhere)], owner="a", lease_s=600)
    rows = {other: [epoch(1)], trial_id: [ranked_epoch(2), epoch(3), ranked_epoch(1)]}
    store.record_epochs({**rows, ids(elsewhere)[0]: [epoch(1)]}, attempts=attempts)
    expected = {trial_id: [ranked_epoch(1), ranked_epoch(2), epoch(3)], other: [epoch(1)]}
    assert store.epochs_by_trial(KEY) == expected
    assert {name: store.epochs(name) for name in (trial_id, other)} == expected
    assert store.epochs_by_trial(replace(KEY, scale="paper")) == {}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_refused_and_nothing_is_written(
    store: Store, trial_id: str, run_id: int, value: float
) -> None:
    # model_construct leaves out pydantic's own check, as a subclass or a later version might.
    bad_epoch = EpochMetrics.model_construct(**{**epoch(1).model_dump(), "valid_loss": value})
    good = dict(outcome(trial_id))
    bad_metric = TrialOutcome.model_construct(
        **{**good, "measurements": {"perplexity@1": {"test_perplexity": value}}}
    )
    bad_epochs = TrialOutcome.model_construct(**{**good, "epochs": (epoch(2), bad_epoch)})
    before = everything(store, trial_id)
    for call in (
        lambda: store.record(bad_metric, run_id=run_id, spectrum=SPECTRUM),
        lambda: store.record(bad_epochs, run_id=run_id, spectrum=SPECTRUM),
        lambda: store.record(outcome(trial_id), run_id=run_id, spectrum=np.array([1.0, value])),
        lambda: store.record(outcome(trial_id), run_id=run_id, spectrum=np.ones((2, 2))),
        lambda: store.record_epochs({trial_id: [epoch(2), bad_epoch]}, attempts=FIRST),
    ):
        with pytest.raises(ValueError, match="finite"):
            call()
    assert everything(store, trial_id) == before


@pytest.mark.parametrize("name", ["spectrum", "spectrum@", "@1", "spectrum@one", "spectrum@-1"])
def test_a_measurement_is_called_name_at_version(
    store: Store, trial_id: str, run_id: int, name: str
) -> None:
    with pytest.raises(ValueError, match="name@version"):
        store.record(
            outcome(trial_id, measurements={name: {"hits": 1}}), run_id=run_id, spectrum=None
        )
    with pytest.raises(ValueError, match="name@version"):
        store.lacking(KEY, [name])


def test_two_measurements_cannot_have_a_metric_of_one_name(
    store: Store, trial_id: str, run_id: int
) -> None:
    clash = {"spectrum@1": {"hits": 1}, "other@1": {"hits": 2}}
    with pytest.raises(ValueError, match="hits is in two measurements"):
        store.record(outcome(trial_id, measurements=clash), run_id=run_id, spectrum=None)
    store.record(outcome(trial_id), run_id=run_id, spectrum=None)
    with pytest.raises(ValueError, match="press_rank is in two measurements"):
        store.add_measurement(trial_id, "other@1", {"press_rank": 2})


def test_a_measurement_is_added_to_a_done_trial_once(
    store: Store, trial_id: str, run_id: int
) -> None:
    with pytest.raises(ValueError, match="running"):
        store.add_measurement(trial_id, "top@1", {"hits": 3})
    store.record(outcome(trial_id), run_id=run_id, spectrum=None)
    before = store.results(KEY)[0]["metrics"]
    assert store.add_measurement(trial_id, "top@1", {"hits": 3}, spectrum=SPECTRUM) is True
    assert store.add_measurement(trial_id, "top@1", {"hits": 4}) is False
    assert store.results(KEY)[0]["metrics"] == before | {"hits": 3}
    np.testing.assert_array_equal(store.spectra(KEY)[trial_id], SPECTRUM)
    assert store.add_measurement(trial_id, "spectrum@10", {"press_rank": 403}, spectrum=SPECTRUM)
    assert store.add_measurement(trial_id, "spectrum@9", {"press_rank": 404})
    with pytest.raises(ValueError, match="done with another spectrum than spectrum@11 gives"):
        store.add_measurement(trial_id, "spectrum@11", {"press_rank": 9}, spectrum=SPECTRUM[1:])
    assert store.results(KEY)[0]["metrics"]["press_rank"] == 403, (
        "the latest version has the last word"
    )


def test_an_unknown_trial_study_or_run_is_a_key_error(store: Store, run_id: int) -> None:
    unknown = "f" * 64
    store.end_run(run_id)
    for call in (
        lambda: store.record(outcome(unknown), run_id=run_id, spectrum=None),
        lambda: store.fail(unknown, cause="lost", run_id=run_id),
        lambda: store.record_epochs({unknown: [epoch(1)]}, attempts={unknown: 1}),
        lambda: store.add_measurement(unknown, "top@1", {}),
        lambda: store.ask_to_stop(unknown),
        lambda: store.ask_to_stop(KEY),
        lambda: store.end_run(run_id + 1),
    ):
        with pytest.raises(KeyError):
            call()


NAMES = ["top_k-1a2b3c4d@1", "perplexity@1", "spectrum@2", "spectrum@1"]


def test_done_trials_are_listed_with_what_they_lack_in_the_given_order(store: Store) -> None:
    trials = ids(plan(6))
    store.register(KEY, plan(6))
    store.register(replace(KEY, corpus="ptb"), plan(1, group="other"))
    run_id = store.begin_run(RUN)
    for trial_id in reversed(trials[:3]):
        store.record(outcome(trial_id), run_id=run_id, spectrum=None)
    store.record(outcome(trials[3], measurements={}), run_id=run_id, spectrum=None)
    store.record(outcome(trials[4], state="diverged"), run_id=run_id, spectrum=None)
    store.record(outcome(ids(plan(1, group="other"))[0]), run_id=run_id, spectrum=None)
    store.add_measurement(trials[1], "top_k-1a2b3c4d@1", {"top": "{}"})
    store.add_measurement(trials[1], "spectrum@2", {"press_rank": 400})
    lacking = store.lacking(KEY, NAMES)
    two = ["top_k-1a2b3c4d@1", "spectrum@2"]
    assert lacking == {trials[0]: two, trials[2]: two, trials[3]: NAMES}
    assert list(lacking) == [trials[0], trials[2], trials[3]], "in plan order"
    assert store.lacking(KEY, ["perplexity@1"]) == {trials[3]: ["perplexity@1"]}
    assert store.lacking(KEY, []) == {}
    assert store.lacking(replace(KEY, study="unknown"), NAMES) == {}


def test_spectra_and_environments_are_those_of_the_studys_trials(store: Store) -> None:
    first, second, failed, other = ids(plan(4))
    variant = replace(KEY, corpus="ptb")
    store.register(KEY, plan(3))
    store.register(variant, [plan(4)[0], plan(4)[3]])
    run_id = store.begin_run(RUN)
    for number, trial_id in enumerate((first, second, other)):
        ended = outcome(trial_id, environment={"torch": f"2.{number}"})
        store.record(
            ended, run_id=run_id, spectrum=None if trial_id == second else SPECTRUM * number
        )
    store.fail(failed, cause="the worker died", run_id=run_id)
    assert store.environments(KEY) == {first: {"torch": "2.0"}, second: {"torch": "2.1"}}
    assert store.environments(variant) == {first: {"torch": "2.0"}, other: {"torch": "2.2"}}
    assert {trial_id: list(values) for trial_id, values in store.spectra(variant).items()} == {
        first: [0.0] * len(SPECTRUM),
        other: list(SPECTRUM * 2),
    }
    assert list(store.spectra(KEY)) == [first]


def test_times_are_those_of_the_trials_that_have_ended(
    store: Store, store_url: str, trial_id: str, run_id: int
) -> None:
    assert store.times(KEY) == {}
    store.record(outcome(trial_id), run_id=run_id, spectrum=SPECTRUM)
    query = f"SELECT started_at, ended_at FROM trial WHERE id = '{trial_id}'"
    with create_engine(store_url).connect() as connection:
        started, ended = connection.execute(text(query)).one()
    (stored,) = store.times(KEY).values()
    as_stored = [
        moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        for moment in map(_moment, (started, ended))
    ]
    assert (
        list(store.times(KEY)) == [trial_id]
        and list(stored) == as_stored
        and stored[0] <= stored[1]
    )


def _moment(value: str | datetime) -> datetime:
    """SQLite has text."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value
