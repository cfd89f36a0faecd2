from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from orchestrator.plan import Search, Tuner, TuningPlan
from orchestrator.schedule import Recorder
from orchestrator.storage import FolderStorage
from orchestrator.store import PlannedTrial, Store, StudyKey, TrialRow, open_store
from tests.support.scripted_tuning import KEY, certain, ending, losses, plan, table
from tests.support.store_rows import RUN, epoch, fail, outcome, plan_of
from trainables.config import TrialConfig
from trainables.trial_folder import TrialFolder, TrialOutcome, trial_directory


class SimulatedStudy:
    def __init__(self, store: Store, tuning: TuningPlan, workers: int = 1) -> None:
        self.store, self.tuning, self.workers = store, tuning, workers
        self.dice = random.Random(0)
        self.ended = Counter[str]()

    def run(self) -> None:
        tuner, run_id = tuner_for(self.tuning, self.store), self.store.begin_run(RUN)
        tuner.start()
        running: dict[str, TrialOutcome] = {}
        attempts: dict[str, int] = {}
        while (more := tuner.more(running)) is not None or running:
            if more and len(running) < self.workers:
                attempts |= self.store.claim([more[0].trial_id], owner="me", lease_s=600)
                running[more[0].trial_id] = trained(tuner, more[0])
                continue
            trial_id = self.dice.choice(list(running))
            assert self.store.record(
                running.pop(trial_id), run_id=run_id, attempt=attempts[trial_id]
            )
            self.ended[trial_id] += 1


def trained(tuner: Tuner, trial: PlannedTrial) -> TrialOutcome:
    config = TrialConfig.model_validate(trial.config)
    rule = tuner.stop_above(trial) if tuner.is_searched(trial) else {}
    by_epoch = dict(enumerate(losses(config), start=1))
    stops = [epoch for epoch, limit in rule.items() if by_epoch[epoch] > limit]
    return ending(config, min(stops, default=len(by_epoch)))


def tuner_for(tuning: TuningPlan, store: Store, *, plans: bool = True) -> Tuner:
    return Tuner(tuning, KEY, certain(tuning), store, plans=plans)


def record_all(store: Store, trials: Iterable[PlannedTrial]) -> None:
    run_id = store.begin_run(RUN)
    for trial in trials:
        store.record(ending(TrialConfig.model_validate(trial.config), 4), run_id=run_id)


def by_stage(rows: list[TrialRow]) -> Counter[tuple[str, str]]:
    return Counter(
        (row.position.side, row.position.stage) for row in rows if row.position is not None
    )


@pytest.mark.parametrize(("search", "workers"), [("tpe", 1), ("random", 2), ("tpe", 5)])
def test_stages_follow_with_equal_budgets(store: Store, search: Search, workers: int) -> None:
    game = SimulatedStudy(store, plan(search), workers)
    game.run()
    rows = store.trials(KEY)
    assert by_stage(rows) == {
        (side, stage): count
        for side in ("narrow", "wide")
        for stage, count in (("stage1", 2), ("stage2", 5), ("final", 2))
    }
    assert {row.state for row in rows} == {"done", "pruned"}
    assert all(" stage2 " in row.name for row in rows if row.state == "pruned")
    assert [row.name.split()[1] for row in rows] == ["stage1"] * 4 + ["stage2"] * 10 + ["final"] * 4
    assert set(game.ended.values()) == {1}
    for side in ("narrow", "wide"):
        tuned = [row for row in rows[:14] if row.name.startswith(side) and row.state == "done"]
        best = min(tuned, key=lambda row: min(losses(TrialConfig.model_validate(row.config))))
        finals = [row.config for row in rows[14:] if row.name.startswith(side)]
        assert finals == [{**best.config, "seed": seed} for seed in (11, 12)]


def test_larger_budget_continues_search(store: Store, tmp_path: Path) -> None:
    SimulatedStudy(store, plan(budget=3)).run()
    first = table(store)
    SimulatedStudy(store, plan(budget=6)).run()
    more = table(store)
    assert [row for row in more if row in first and " stage2 " in row[0]] == [
        r for r in first if " stage2 " in r[0]
    ]
    SimulatedStudy(store, plan(budget=3)).run()
    assert table(store) == first
    with open_store(f"sqlite:///{tmp_path}/other.db") as other:
        SimulatedStudy(other, plan(budget=6)).run()
        assert table(other) == more


def test_whole_grid_is_planned(store: Store, tmp_path: Path) -> None:
    game = SimulatedStudy(store, plan("grid", None), workers=3)
    assert len(list(game.tuning.certain())) == 2 * (2 + 20)
    game.run()
    rows = store.trials(KEY)
    assert len(rows) == game.tuning.total == 2 * (2 + 20 + 2)
    assert {row.state for row in rows} == {"done"}
    with open_store(f"sqlite:///{tmp_path}/search.db") as other:
        SimulatedStudy(other, plan("random", 20)).run()
        assert by_stage(other.trials(KEY)) == by_stage(rows)


def test_leftover_pruned_result_counts_for_search(store: Store, tmp_path: Path) -> None:
    tuning = plan()
    tuner = tuner_for(tuning, store)
    trial = tuning.searched("wide", 1, (0, 0))
    store.register(KEY, [trial])
    folder = trial_directory(tmp_path, trial.trial_id)
    folder.mkdir(parents=True)
    TrialFolder(folder, trial.trial_id).write_result(outcome(trial.trial_id, state="pruned"), None)
    recorder = Recorder(store, FolderStorage(tmp_path), store.begin_run(RUN))
    assert recorder.recover([trial], note=print) == []
    assert store.states([trial.trial_id]) == {trial.trial_id: "planned"}
    [(_, taken)] = recorder.recover([trial], note=print, may_be_pruned=tuner.is_searched)
    assert taken
    assert store.states([trial.trial_id]) == {trial.trial_id: "pruned"}


def test_no_results_no_finals(store: Store) -> None:
    tuning = plan(budget=2)
    tuner = tuner_for(tuning, store)
    tuner.start()
    run_id = store.begin_run(RUN)
    while more := tuner.more(busy=()):
        for trial in more:
            if trial.name.startswith("narrow"):
                fail(store, trial.trial_id, cause="a cause", run_id=run_id)
        record_all(store, [trial for trial in more if trial.name.startswith("wide")])
    assert more is None
    assert tuner.over
    stages = by_stage(store.trials(KEY))
    assert set(stages.values()) == {2} and len(stages) == 5 and ("narrow", "final") not in stages


def test_retried_trial_may_stop_again(store: Store) -> None:
    game = SimulatedStudy(store, plan())
    game.run()
    before = table(store)
    *_, trial = (row for row in store.trials(KEY) if row.state == "pruned")
    fail(store, trial.trial_id, cause="a cause", run_id=1)
    store.reset([trial.trial_id])
    retry = tuner_for(game.tuning, store, plans=False)
    assert (retry.more(busy=()), retry.over, retry.is_searched(trial)) == (None, True, True)
    limits = retry.stop_above(trial)
    reached = next(row for row in before if row[1] == trial.trial_id)[3]
    assert reached[-1] > limits[len(reached)]
    tuner_for(plan(budget=1), store).start()
    assert retry.stop_above(trial) == {}, "the smaller budget has dropped the trial"


@pytest.mark.parametrize("cell", [(0, 0), (4, 3)])
def test_other_drivers_plan_is_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch, cell: tuple[int, int]
) -> None:
    """The other driver saw other results, so it may have planned the same cell or another cell."""
    tuning = plan(budget=3)
    tuner = tuner_for(tuning, store)
    record_all(store, tuner.start())
    read_trials, foreign_trial = Store.trials, tuning.searched("narrow", 1, cell)

    def read_while_another_driver_plans(self: Store, key: StudyKey) -> list[TrialRow]:
        rows = read_trials(self, key)
        if len(rows) == 4:
            self.register(key, [*rows, foreign_trial])
        return rows

    monkeypatch.setattr(Store, "trials", read_while_another_driver_plans)
    assert [plan_of(trial) for trial in tuner.more(busy=()) or ()] == [foreign_trial]
    assert [plan_of(row) for row in store.trials(KEY)[4:]] == [foreign_trial]


def test_new_best_brings_new_finals(store: Store) -> None:
    tuning = plan(budget=1)
    tuner = tuner_for(tuning, store)
    trials = tuner.start()
    run_id = store.begin_run(RUN)
    late = next(trial for trial in trials if trial.name.startswith("wide"))
    fail(store, late.trial_id, cause="a cause", run_id=run_id)
    while more := tuner.more(busy=()):
        record_all(store, more)
    assert tuner.over
    old = {row.trial_id for row in store.trials(KEY) if " final " in row.name}
    store.reset([late.trial_id])
    best = outcome(late.trial_id).model_copy(update={"epochs": (epoch(1, valid_loss=1.0),)})
    store.record(best, run_id=run_id)
    again = tuner_for(tuning, store)
    finals = [trial for trial in again.start() if " final " in trial.name]
    assert not again.over
    assert [trial.config for trial in finals if trial.name.startswith("wide")] == [
        {**late.config, "seed": seed} for seed in (11, 12)
    ]
    assert {trial.trial_id for trial in finals if trial.name.startswith("narrow")} < old
