from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from orchestrator.forecast import Estimate, configs_left, estimate, seconds_each
from orchestrator.forecast.estimates import core_seconds, gpu_seconds
from orchestrator.plan import Plan, make_plan
from orchestrator.store import PlannedTrial, Store
from search_spaces.catalog import load_study
from search_spaces.scales import FULL, SCALES
from tests.support import own_study
from tests.support.store_rows import RUN, execute
from trainables.trial_folder import TrialOutcome


def plan_of(study: str) -> Plan:
    return make_plan(load_study(study), SCALES["quick"], "pydocs")


def end(store: Store, plan: Plan, seconds: dict[str, float]) -> None:
    store.register(plan.key, plan.trials)
    run_id = store.begin_run(RUN)
    for trial in plan.trials:
        if trial.name in seconds:
            outcome = TrialOutcome(
                trial_id=trial.trial_id,
                state="done",
                measurements={"cost@1": {"wall_seconds": seconds[trial.name]}},
                environment={"device": "cpu"},
            )
            store.record(outcome, run_id=run_id, spectrum=None)


def test_more_mixtures_take_longer(store: Store) -> None:
    plan = plan_of("mos_k")
    cores = {trial.name: core_seconds(trial.validated, plan.corpus) for trial in plan.trials}
    end(store, plan, {name: 2 * cores[name] for name in ("mos K=1", "mos K=3")})
    for trial in plan.trials:
        seconds, basis = seconds_each([trial.validated], plan, store, gpu=False)
        assert seconds == pytest.approx(2 * cores[trial.name]) and "2 done" in basis
    configs = [trial.validated for trial in plan.trials[:2]]
    expected = sum(core_seconds(config, plan.corpus) for config in configs)
    assert seconds_each(configs, plan, store, gpu=False)[0] == pytest.approx(expected)


def test_untrained_layer_gets_common_correction(store: Store) -> None:
    plan = plan_of("plif_lm")
    trials = {trial.validated.family: trial for trial in plan.trials}
    softmax, mos = trials["softmax"], trials["mos"].validated
    end(store, plan, {softmax.name: 3 * core_seconds(softmax.validated, plan.corpus)})
    seconds, _ = seconds_each([mos], plan, store, gpu=False)
    assert seconds == pytest.approx(3 * core_seconds(mos, plan.corpus))
    seconds, basis = seconds_each([mos], plan, store, gpu=True)
    assert seconds == gpu_seconds(mos, plan.corpus) and "V100" in basis


def test_unchosen_tuning_trials_count(store: Store) -> None:
    plan = plan_of("fair_capacity")
    assert plan.tuning is not None and len(configs_left(plan.tuning, [])) == plan.total == 72
    done = [trial.name for trial in plan.trials if trial.name.startswith("mos_dagger")][:3]
    end(store, plan, dict.fromkeys(done, 10.0))
    layers = [config.family for config in configs_left(plan.tuning, store.trials(plan.key))]
    assert Counter(layers) == {"mos": 21, "softmax": 48}


def test_older_configs_are_excluded(store: Store) -> None:
    plan = plan_of("mos_k")
    old = {"kind": "language_model", "schema_version": 1}
    old_id = hashlib.sha256(json.dumps(old, separators=(",", ":")).encode()).hexdigest()
    store.register(plan.key, [PlannedTrial(trial_id=old_id, name="old", config=old)])
    cost = {"cost@1": {"wall_seconds": 1.0}}
    outcome = TrialOutcome(trial_id=old_id, state="done", measurements=cost)
    store.record(outcome, run_id=store.begin_run(RUN), spectrum=None)
    assert "operations" in seconds_each([], plan, store, gpu=False)[1]


def test_damage_elsewhere_is_ignored(store: Store, tmp_path: Path) -> None:
    plans = [plan_of("mos_k"), plan_of("plif_lm")]
    for plan in plans:
        end(store, plan, {trial.name: 10.0 for trial in plan.trials})
    count = len(plans[0].trials)
    assert f"{count} done" not in seconds_each([], plans[0], store, gpu=False)[1]
    victim = next(
        trial.trial_id for trial in plans[1].trials if trial.validated.family == "softmax"
    )
    execute(
        f"sqlite:///{tmp_path}/results.db",
        "UPDATE result SET metrics = '{}' WHERE trial_id = :id",
        id=victim,
    )
    assert f"{count} done" in seconds_each([], plans[0], store, gpu=False)[1]


def test_own_trials_have_only_measured_times(store: Store) -> None:
    plan = make_plan(load_study(own_study.__file__), FULL, "none")
    config = plan.trials[0].validated
    assert estimate(config, plan.corpus) == Estimate(
        gpu_hours=0, core_hours=0, memory_gb=0, gpu_memory_gb=0
    )
    assert seconds_each([config], plan, store, gpu=False)[1] == ""
    end(store, plan, {trial.name: 7.0 for trial in plan.trials[:3]})
    seconds, basis = seconds_each([config], plan, store, gpu=False)
    assert seconds == pytest.approx(7) and "3 done" in basis
    assert seconds_each([config], plan, store, gpu=True)[1] == ""
