"""Seeds of a setting: how many a scale or `--seeds` gives, in which order, and which studies have
no use for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.plan import Plan, PlanRequest, make_plan, scale_named
from orchestrator.store import Store, open_store
from search_spaces.catalog import NAMES, load_study
from search_spaces.models import RANDOM_SEEDS
from search_spaces.study import Study, group_of
from tests.support.command import sweep
from tests.support.one_ray import without_ray
from tests.support.store_rows import RUN
from trainables.config import TrueRankConfig
from trainables.errors import UserError
from trainables.trial_folder import TrialOutcome

GRID = load_study("gss_grid")


def plan_of(
    study: Study, scale: str = "paper", corpus: str = "ptb", *, seeds: int | None = None
) -> Plan:
    return make_plan(study, scale_named(scale), corpus, PlanRequest(seeds=seeds))


@pytest.mark.parametrize(
    ("scale", "seeds"), [("smoke", 1), ("quick", 3), ("small", 1), ("paper", 1)]
)
def test_the_grid_has_three_seeds_a_cell_at_scale_quick_alone(scale: str, seeds: int) -> None:
    plan = plan_of(GRID, scale)
    cells = {"smoke": 4, "quick": 27}.get(scale, 72)
    assert (plan.seeds, plan.total, len(plan.trials)) == (seeds, cells * seeds, cells * seeds)
    assert len({group_of(trial.name) for trial in plan.trials}) == cells


def test_all_trials_adds_what_quick_leaves_out() -> None:
    few, whole = (
        plan_of(GRID, "quick"),
        make_plan(GRID, scale_named("quick"), "ptb", PlanRequest(all_trials=True)),
    )
    assert (whole.key, whole.total, whole.seeds) == (few.key, 216, 3)
    assert {trial.trial_id for trial in few.trials} < {trial.trial_id for trial in whole.trials}


def test_all_trials_is_refused_by_a_study_that_tunes() -> None:
    with pytest.raises(UserError, match="--all-trials"):
        make_plan(
            load_study("fair_capacity"), scale_named("quick"), "ptb", PlanRequest(all_trials=True)
        )


def test_trials_that_a_scale_makes_equal_run_once() -> None:
    plan = make_plan(
        load_study("head_rank"), scale_named("quick"), "ptb", PlanRequest(all_trials=True)
    )
    assert len({trial.trial_id for trial in plan.trials}) == len(plan.trials) < 2 * 187


@pytest.mark.parametrize("scale", ["smoke", "paper"])
def test_all_trials_of_all_studies_leaves_out_the_one_that_tunes(scale: str) -> None:
    answer = sweep("all", "--scale", scale, "--all-trials", "--dry-run")
    assert answer.returncode == 0, answer.stderr


def test_more_seeds_are_more_of_the_same_variant_round_by_round() -> None:
    """The setting's own seed (141, SM Table 6) comes first; nothing but the seed differs between
    two rounds."""
    one, three = plan_of(GRID), plan_of(GRID, seeds=3)
    assert one.key == three.key
    assert [trial.trial_id for trial in three.trials[:72]] == [
        trial.trial_id for trial in one.trials
    ]
    assert (
        one.trials[0].name == "gss c=-2 k=1.25"
        and three.trials[0].name == "gss c=-2 k=1.25 seed=141"
    )
    seeds = [141, *RANDOM_SEEDS[:2]]
    assert [trial.config.seed for trial in three.trials] == [
        seed for seed in seeds for _ in range(72)
    ]
    for number, trial in enumerate(three.trials):
        own = one.trials[number % 72]
        assert trial.name == f"{own.name} seed={trial.config.seed}"
        assert trial.config.model_copy(update={"seed": 141}) == own.config


def test_a_seed_that_is_the_settings_own_is_no_further_one() -> None:
    request = PlanRequest(settings={"seed": (RANDOM_SEEDS[1],)}, seeds=3)
    plan = make_plan(GRID, scale_named("smoke"), "pydocs", request)
    assert list(dict.fromkeys(t.config.seed for t in plan.trials)) == [
        RANDOM_SEEDS[i] for i in (1, 0, 2)
    ]


def test_trials_that_are_done_count_when_more_seeds_are_asked_for(store: Store) -> None:
    one, two = plan_of(GRID, "smoke", "pydocs"), plan_of(GRID, "smoke", "pydocs", seeds=2)
    store.register(one.key, [trial.planned() for trial in one.trials])
    run_id = store.begin_run(RUN)
    for trial in one.trials:
        store.record(
            TrialOutcome(trial_id=trial.trial_id, state="done", environment={}),
            run_id=run_id,
            spectrum=None,
        )
    store.register(two.key, [trial.planned() for trial in two.trials])
    [summary] = store.studies()
    assert (summary.counts["done"], summary.counts["planned"]) == (4, 4)


def test_the_truth_of_a_generated_language_is_measured_once() -> None:
    plan = plan_of(load_study("rank_metrics"), "quick", "markov", seeds=3)
    truths = [trial for trial in plan.trials if isinstance(trial.config, TrueRankConfig)]
    assert (len(truths), plan.total) == (3, 3 + 3 * 6)


@pytest.mark.parametrize("count", [0, -1, 12])
def test_a_number_of_seeds_that_there_is_not_is_refused(count: int) -> None:
    with pytest.raises(UserError, match=f"from 1 to 11; got {count}"):
        plan_of(GRID, seeds=count)
    assert plan_of(GRID, seeds=11).total == 11 * 72


@pytest.mark.parametrize(
    ("study", "why"),
    [
        ("seeds", "seeds has 11 of each"),
        ("plif_frozen", "plif_frozen has 10 of each"),
        ("fair_capacity", "fair_capacity tunes, with 10 seeds"),
        ("layer_jacobian", "layer_jacobian trains nothing"),
    ],
)
def test_a_study_without_a_use_for_more_seeds_says_so(study: str, why: str) -> None:
    chosen = load_study(study)
    with pytest.raises(UserError, match=why):
        plan_of(chosen, corpus="ptb" if chosen.reads_text else "none", seeds=2)


def test_a_study_that_repeats_its_settings_itself_has_no_seeds_by_scale() -> None:
    study = replace(load_study("seeds"), seeds={"quick": 3})
    with pytest.raises(
        UserError, match=r"the field seeds of seeds is for studies .* seeds has 11 of each"
    ):
        plan_of(study, "quick")
    assert plan_of(study, "paper").total == 55


def test_all_gives_them_to_the_studies_that_they_are_for() -> None:
    answer = sweep("all", "--scale", "paper", "--seeds", "2", "--dry-run")
    assert answer.returncode == 0
    doubled = {line.split()[1] for line in answer.stdout.splitlines() if " x 2 " in line}
    several = {
        "seeds",
        "plif_frozen",
        "fair_capacity",
        "dirichlet",
        "layer_gates",
        "layer_jacobian",
        "spam",
    }
    assert doubled == set(NAMES) - several - {"press_robustness", "published"}


def test_a_study_says_of_a_scale_how_many_seeds_and_which_trials() -> None:
    study = replace(GRID, seeds={"smoke": 2, "quick": 2}, quick=lambda trials: trials[::9])
    assert plan_of(study, "smoke").total == 8
    plan = plan_of(study, "quick")
    assert (plan.total, plan.seeds) == (16, 2)
    assert [trial.name for trial in plan.trials[:8]] == [
        f"{t.name} seed=141" for t in plan_of(study).trials[::9]
    ]
    mistakes: list[Any] = [{"quikc": 3}, {"quick": 0}, {"quick": "3"}, 3]
    for wrong in mistakes:
        with pytest.raises(UserError, match="seeds of a study is a number for scales"):
            replace(GRID, seeds=wrong)


def test_retry_names_the_option_that_a_failed_seed_needs(tmp_path: Path) -> None:
    two = plan_of(GRID, "smoke", "pydocs", seeds=2)
    with open_store(str(tmp_path / "results.db"), create=True) as opened:
        opened.register(two.key, [trial.planned() for trial in two.trials])
        failed = TrialOutcome(
            trial_id=two.trials[-1].trial_id,
            state="failed",
            environment={},
            cause="a disk was full",
        )
        opened.record(failed, run_id=opened.begin_run(RUN), spectrum=None)
    answer = sweep("retry", "gss_grid", "--scale", "smoke", "--storage", str(tmp_path))
    assert "nothing to retry" in answer.stdout and "--seeds" in answer.stdout


def test_done_trials_of_seeds_that_are_not_asked_for_are_named(tmp_path: Path) -> None:
    two = plan_of(GRID, "smoke", "pydocs", seeds=2)
    with open_store(str(tmp_path / "results.db"), create=True) as opened:
        opened.register(two.key, [trial.planned() for trial in two.trials])
        run_id = opened.begin_run(RUN)
        for number, trial in enumerate(two.trials):
            state, cause = ("failed", "a disk was full") if number < 4 else ("done", None)
            measured = {"perplexity@1": {"test_perplexity": 2.0}} if state == "done" else {}
            outcome = TrialOutcome(
                trial_id=trial.trial_id, state=state, measurements=measured, cause=cause
            )
            opened.record(outcome, run_id=run_id, spectrum=None)
    with without_ray():
        answer = sweep("gss_grid", "--scale", "smoke", "--storage", str(tmp_path))
    assert "Left out of this plan and of its report: 4 done trials of gss_grid" in answer.stdout
    with open_store(str(tmp_path / "results.db")) as opened:
        assert set(opened.states([trial.trial_id for trial in two.trials[4:]]).values()) == {"done"}
