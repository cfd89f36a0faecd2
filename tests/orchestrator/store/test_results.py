"""What comes of a whole study: `lacking`, `spectra`, `environments`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.store.store import Store
from tests.support.store_rows import KEY, RUN, SPECTRUM, ids, outcome, plan

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
    store.add_measurement(trials[1], "top_k-1a2b3c4d@1", {"top": "{}"}, run_id=run_id)
    store.add_measurement(trials[1], "spectrum@2", {"press_rank": 400}, run_id=run_id)
    lacking = store.lacking(KEY, NAMES)
    two = ["top_k-1a2b3c4d@1", "spectrum@2"]
    assert lacking == {trials[0]: two, trials[2]: two, trials[3]: NAMES}
    assert list(lacking) == [trials[0], trials[2], trials[3]], "in plan order"
    assert store.lacking(KEY, ["perplexity@1"]) == {trials[3]: ["perplexity@1"]}
    assert store.lacking(KEY, []) == {}
    assert store.lacking(replace(KEY, study="unknown"), NAMES) == {}


def test_a_name_without_a_version_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="name@version"):
        store.lacking(KEY, ["spectrum"])


def test_spectra_and_environments_are_those_of_the_studys_trials(store: Store) -> None:
    run_id = store.begin_run(RUN)
    trials, variant = plan(5), replace(KEY, corpus="ptb")
    store.register(KEY, trials)
    store.register(variant, [trials[0], *plan(1, group="other")])
    recorded = [*ids(trials[:3]), *ids(plan(1, group="other"))]
    environments = {trial_id: {"torch": f"2.{number}"} for number, trial_id in enumerate(recorded)}
    spectra = {trial_id: SPECTRUM * (number + 1) for number, trial_id in enumerate(recorded) if number != 2}
    for trial_id in recorded:
        ended = outcome(trial_id, environment=environments[trial_id])
        store.record(ended, run_id=run_id, spectrum=spectra.get(trial_id))
    store.fail(trials[3].trial_id, cause="the worker died", run_id=run_id)
    for key, members in ((KEY, recorded[:3]), (variant, [recorded[0], recorded[3]]), (replace(KEY, study="new"), [])):
        assert store.environments(key) == {trial_id: environments[trial_id] for trial_id in members}
        assert {trial_id: values.tobytes() for trial_id, values in store.spectra(key).items()} == {
            trial_id: spectra[trial_id].tobytes() for trial_id in members if trial_id in spectra
        }
