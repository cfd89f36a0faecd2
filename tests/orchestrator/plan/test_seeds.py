from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.plan import Plan, PlanRequest, make_plan
from orchestrator.store import open_store
from search_spaces.catalog import NAMES, load_study
from search_spaces.models import RANDOM_SEEDS
from search_spaces.scales import SCALES
from search_spaces.study import Study
from tests.support.command import sweep
from tests.support.one_ray import without_ray
from tests.support.store_rows import RUN, outcome
from trainables.config import TrueRankConfig
from trainables.errors import UserError

GRID = load_study("gss_grid")


def plan_of(study: Study, scale: str = "paper", corpus: str = "ptb", **request: Any) -> Plan:
    return make_plan(study, SCALES[scale], corpus, PlanRequest(**request))


def ids(plan: Plan) -> list[str]:
    return [trial.trial_id for trial in plan.trials]


def test_all_trials_adds_omitted_trials() -> None:
    few, whole = plan_of(GRID, "quick"), plan_of(GRID, "quick", all_trials=True)
    assert (whole.key, whole.total, whole.seeds) == (few.key, 3 * 72, 3)
    assert {*ids(few)} < {*ids(whole)}


def test_equal_scaled_trials_run_once() -> None:
    plan = plan_of(load_study("head_rank"), "quick", all_trials=True)
    assert len({*ids(plan)}) == len(plan.trials) < 2 * 187


def test_extra_seeds_are_extra_rounds() -> None:
    """The first round has the study's own seed: 141, from SM Table 6.

    Later rounds differ only in the seed.
    """
    one, three = plan_of(GRID), plan_of(GRID, seeds=3)
    assert one.key == three.key and ids(three)[:72] == ids(one)
    seeds = [141, *RANDOM_SEEDS[:2]]
    assert [trial.validated.seed for trial in three.trials] == [s for s in seeds for _ in range(72)]
    for number, trial in enumerate(three.trials):
        first_round = one.trials[number % 72]
        assert trial.name == f"{first_round.name} seed={trial.validated.seed}"
        assert trial.validated.model_copy(update={"seed": 141}) == first_round.validated


def test_setting_seed_is_not_extra() -> None:
    plan = plan_of(GRID, "smoke", "pydocs", settings={"seed": (RANDOM_SEEDS[1],)}, seeds=3)
    assert list(dict.fromkeys(t.validated.seed for t in plan.trials)) == [
        RANDOM_SEEDS[i] for i in (1, 0, 2)
    ]


def test_language_truth_has_one_seed() -> None:
    plan = plan_of(load_study("rank_metrics"), "quick", "markov", seeds=3)
    truths = [trial for trial in plan.trials if isinstance(trial.validated, TrueRankConfig)]
    assert (len(truths), plan.total) == (3, 3 + 3 * 6)


@pytest.mark.parametrize(
    ("study", "request_", "word"),
    [
        ("gss_grid", {"seeds": 0}, "got 0"),
        ("gss_grid", {"seeds": 1001}, "1 to 1000"),
        ("seeds", {"seeds": 2}, "11 seeds"),
        ("fair_capacity", {"seeds": 2}, "tunes"),
        ("fair_capacity", {"all_trials": True}, "--all-trials"),
        ("layer_jacobian", {"seeds": 2}, "trains nothing"),
    ],
)
def test_unsupported_option_is_refused(study: str, request_: dict[str, Any], word: str) -> None:
    chosen = load_study(study)
    with pytest.raises(UserError, match=word):
        plan_of(chosen, corpus="ptb" if chosen.reads_text else "none", **request_)


def test_repeated_settings_forbid_scaled_seeds() -> None:
    study = replace(load_study("seeds"), seeds={"quick": 3})
    with pytest.raises(UserError, match="the field seeds of seeds"):
        plan_of(study, "quick")
    assert plan_of(study, "paper").total == 55


def test_all_adds_seeds_where_supported() -> None:
    answer = sweep("all", "--scale", "paper", "--seeds", "2", "--dry-run")
    costs = answer.stdout.splitlines()
    doubled = {line.partition(",")[0] for line in costs if ", 2 seeds of each setting:" in line}
    assert {"gss_grid", "mos_k"} < doubled < {*NAMES} - {"seeds", "fair_capacity", "published"}


def test_study_sets_seeds_per_scale() -> None:
    study = replace(GRID, seeds={"smoke": 2, "quick": 2}, quick=lambda trials: trials[::9])
    assert plan_of(study, "smoke").total == 8
    plan = plan_of(study, "quick")
    assert (plan.total, plan.seeds) == (16, 2)
    names = [f"{trial.name} seed=141" for trial in plan_of(study).trials[::9]]
    assert [trial.name for trial in plan.trials[:8]] == names


def test_unplanned_done_trials_are_reported(tmp_path: Path) -> None:
    two = plan_of(GRID, "smoke", "pydocs", seeds=2)
    with open_store(str(tmp_path / "results.db")) as store:
        store.register(two.key, two.trials)
        run_id = store.begin_run(RUN)
        for number, trial_id in enumerate(ids(two)):
            ending = outcome(trial_id, state="failed" if number < 4 else "done")
            store.record(ending, run_id=run_id, spectrum=None)
    with without_ray():
        answer = sweep("gss_grid", "--scale", "smoke", "--storage", str(tmp_path))
    assert "omit 4 done trials" in answer.stdout
    with open_store(str(tmp_path / "results.db")) as store:
        assert set(store.states(ids(two)[4:]).values()) == {"done"}
