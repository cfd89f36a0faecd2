"""Searches of users' own trials, whose metrics are a formula of the config."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from orchestrator.analysis import flatten, tuned_numbers
from orchestrator.plan import Plan, PlanRequest, Tuner, make_plan, studies_of
from orchestrator.plan.tuning.search import rung_epochs
from orchestrator.store import PlannedTrial, Store, open_store
from search_spaces.spaces import Search, When
from search_spaces.study import Study, Tuned
from tests.support.store_rows import RUN
from trainables.config import Trainable, read_config
from trainables.errors import UserError
from trainables.trial_folder import TrialOutcome, UserEpoch

__package__ = ""  # classes of trials must be in no package


class Curve(Trainable):
    optimizer: Literal["adam", "sgd"] = "adam"
    width: int = 2
    momentum: float = 0.0
    epochs: int = 9

    @property
    def top(self) -> float:
        return 10.0 - abs(self.width - 5) - (self.momentum - 0.9) ** 2 - (self.optimizer == "adam")

    def accuracies(self) -> list[float]:
        return [self.top * (1 - 0.5 ** (epoch + 1)) for epoch in range(self.epochs)]


BEST = {"optimizer": "sgd", "width": 5, "momentum": 0.9}


def study_of(mode: Any = "max", **changes: Any) -> Study:
    parts, fields = (When("optimizer", "sgd", momentum=(0.0, 0.5, 0.9)),), {}
    fields = {"optimizer": ("adam", "sgd"), "width": range(1, 9), "budget": 20, **changes}
    search = Search(fields.pop("base", Curve), *parts, **fields)
    return Study(name="own", trials=search, metric="accuracy", mode=mode, seeds=3)


def plan_of(study: Study, **request: Any) -> Plan:
    return make_plan(study, study.scale(), "none", PlanRequest(**request))


def tuner_of(plan: Plan, store: Store) -> Tuner:
    assert plan.tuning is not None
    return Tuner(plan.tuning, plan.key, plan.trials, store)


def outcome_of(tuner: Tuner, trial: PlannedTrial, *, mode: str, by_epoch: bool) -> TrialOutcome:
    config = read_config(trial.config)
    assert isinstance(config, Curve)
    sign = 1 if mode == "max" else -1
    values = [sign * value for value in config.accuracies()]
    limits = tuner.stop_above(trial) if tuner.is_searched(trial) else {}
    stops = [epoch for epoch, limit in limits.items() if -sign * values[epoch - 1] > limit]
    last = min(stops, default=config.epochs)
    epochs = tuple(UserEpoch(epoch=n, seconds=0.1, accuracy=values[n]) for n in range(last))
    return TrialOutcome(
        trial_id=trial.trial_id,
        state="pruned" if stops else "done",
        cause="poor" if stops else None,
        epochs=epochs if by_epoch else (),
        measurements={} if stops else {"user@1": {"accuracy": sign * config.top}},
    )


def run(
    store: Store, plan: Plan, *, mode: str = "max", by_epoch: bool = True, kills: bool = False
) -> list[tuple[Any, ...]]:
    tuner, run_id = tuner_of(plan, store), store.begin_run(RUN)
    tuner.start()
    while more := tuner.more(busy=()):
        store.record(outcome_of(tuner, more[0], mode=mode, by_epoch=by_epoch), run_id=run_id)
        if kills:  # the next driver knows only the store
            tuner = tuner_of(plan, store)
            tuner.start()
    return [
        (row.name, row.trial_id, row.state, row.config, len(store.epochs(row.trial_id)))
        for row in store.trials(plan.key)
    ]


@pytest.mark.parametrize("mode", ["max", "min"])
@pytest.mark.parametrize("by_epoch", [True, False])
@pytest.mark.parametrize("method", ["tpe", "random"])
def test_search_finds_the_best_cell(store: Store, mode: str, by_epoch: bool, method: str) -> None:
    """The budget covers all 32 cells; the base is one of them, and not trained twice."""
    base = Curve.model_validate({"momentum": 0.3})  # a value that no cell varies
    plan = plan_of(study_of(mode, budget=50, method=method, base=base))
    rows = run(store, plan, mode=mode, by_epoch=by_epoch)
    assert len(rows) == plan.total == 32 + 3
    assert len({trial_id for _, trial_id, *_ in rows}) == len(rows)
    finals = [config for name, _, _, config, _ in rows if name.startswith("Curve final")]
    assert [config["seed"] for config in finals] == [2, 3, 4]
    assert all(config.items() >= BEST.items() for config in finals)
    assert by_epoch == any(state == "pruned" for _, _, state, *_ in rows)


def test_tpe_finds_best_within_budget(store: Store) -> None:
    rows = run(store, plan_of(study_of(width=range(1, 41), budget=40)))
    assert rows[-1][3]["optimizer"] == "sgd" and abs(rows[-1][3]["width"] - 5) <= 1


def test_pruned_trials_stop_at_rungs(store: Store) -> None:
    rows = run(store, plan_of(study_of()))
    reached = {count for _, _, state, _, count in rows if state == "pruned"}
    assert reached and reached <= set(rung_epochs(9))
    assert {count for _, _, state, _, count in rows if state == "done"} == {9}


class Endless(Trainable):
    width: int = 1


def test_limits_count_epochs_from_one(store: Store) -> None:
    plan = plan_of(study_of())
    tuner, run_id = tuner_of(plan, store), store.begin_run(RUN)
    [base] = tuner.start()
    store.record(outcome_of(tuner, base, mode="max", by_epoch=True), run_id=run_id)
    more = tuner.more(busy=())
    assert more and tuner.stop_above(more[0]) == {3: -Curve.model_validate({}).accuracies()[2]}


def test_no_epochs_no_pruning(store: Store) -> None:
    search = Search(Endless, width=(1, 2))
    plan = plan_of(Study(name="own", trials=search, metric="accuracy"))
    tuner = tuner_of(plan, store)
    [base] = tuner.start()
    assert tuner.stop_above(base) == {}


@pytest.mark.parametrize("method", ["tpe", "random"])
def test_killed_search_equals_uninterrupted(store: Store, tmp_path: Path, method: str) -> None:
    plan = plan_of(study_of(method=method))
    whole = run(store, plan)
    with open_store(f"sqlite:///{tmp_path}/other.db") as other:
        assert run(other, plan, kills=True) == whole


def test_metric_never_reported_ends(store: Store) -> None:
    plan = plan_of(study_of(budget=3))
    tuner, run_id = tuner_of(plan, store), store.begin_run(RUN)
    tuner.start()
    while more := tuner.more(busy=()):
        other = {"user@1": {"loss": 1.0}}
        store.record(
            TrialOutcome(trial_id=more[0].trial_id, state="done", measurements=other),
            run_id=run_id,
        )
    assert more is None and len(store.trials(plan.key)) == 4


def test_common_words_may_name_metrics(store: Store) -> None:
    plan, metrics = plan_of(study_of(budget=1)), {"steps": 3.0, "model": "a", "rank": 2}
    [trial] = tuner_of(plan, store).start()
    done = TrialOutcome(trial_id=trial.trial_id, state="done", measurements={"user@1": metrics})
    store.record(done, run_id=store.begin_run(RUN))
    frame = flatten(store.results(plan.key)).frame()
    assert frame[[*metrics]].to_dict("records") == [metrics]


def test_grid_search_trains_base_once() -> None:
    plan = plan_of(study_of(), search="grid")
    names = [trial.name for trial in plan.trials]
    assert len(names) == plan.total - 3 == 32 and len({t.trial_id for t in plan.trials}) == 32


@pytest.mark.parametrize(("method", "own"), [("random", "tpe"), ("tpe", "random")])
def test_another_method_is_another_variant(tmp_path: Path, method: Any, own: Any) -> None:
    (tmp_path / "own.py").write_text(
        "from search_spaces.spaces import Search\nfrom search_spaces.study import Study\n"
        "from trainables.config import Command\n"
        f"SEARCH = Search(Command(['true']), seed=(1, 2), method={method!r})\n"
        "STUDY = Study(name='own', trials=SEARCH, metric='loss')\n"
    )
    texts = {
        search: request.variant.text
        for search in (None, method, own)
        for *_, request in studies_of(
            str(tmp_path / "own.py"), None, None, PlanRequest(search=search)
        )
    }
    assert texts == {None: "{}", method: "{}", own: f'{{"search":"{own}"}}'}


@pytest.mark.parametrize("values", [{"width": (3,)}, {"optimizer": ("sgd",)}])
def test_set_of_searched_field_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="tunes"):
        plan_of(study_of(), settings=values)


def test_wrong_value_is_refused_before_training() -> None:
    with pytest.raises(UserError, match="integer"):
        plan_of(study_of(width=(1, "x")))


def test_report_names_best_of_metric(store: Store) -> None:
    plan = plan_of(study_of(budget=50))
    run(store, plan)
    [tuned] = [one for one in plan.study.analyses if isinstance(one, Tuned)]
    frame = flatten(store.results(plan.key)).frame()
    [side] = tuned_numbers(frame, tuned.goal).to_dict("records")
    assert (side["stage1"], side["stage2"], side["accuracy"]) == (1, 31, 10.0)
    assert "optimizer=sgd width=5 momentum=0.9" in side["best"]
