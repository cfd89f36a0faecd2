"""A whole tuning over a real store, its workers played by the test: nothing lost, repeated or left
running."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from orchestrator.plan import Tuner, TuningPlan
from orchestrator.schedule.dispatcher import Dispatcher
from orchestrator.schedule.recording import Recorder
from orchestrator.storage import FolderStorage
from orchestrator.store import OPEN, PlannedTrial, Store, StudyKey, TrialRow, open_store
from orchestrator.worker import Pack, TrialEvent
from tests.support.scripted_trials import work_in
from tests.support.scripted_tuning import KEY, certain, ending, epochs_of, losses, plan, table
from tests.support.store_rows import RUN, fail
from trainables.config import TrialConfig
from trainables.trial_folder import EpochMetrics, TrialFolder, TrialOutcome, trial_directory


@dataclass
class Played:
    """One run of the command with workers that take turns at random; `dies_after` so many turns."""

    store: Store
    storage: Path
    tuning: TuningPlan
    workers: int
    dice: random.Random = field(default_factory=lambda: random.Random(0))
    checkpoints: dict[str, int] = field(default_factory=dict)
    """Epochs by trial, on the disk: they outlive a run."""
    ended: Counter[str] = field(default_factory=Counter)

    def run(self, dies_after: int | None = None) -> bool:
        """Returns whether the run came to its end."""
        for owner in self.store.owners():
            self.store.release(owner)
        tuner = tuner_for(self.tuning, self.store)
        trials = tuner.start()
        states = self.store.states([trial.trial_id for trial in trials])
        work = work_in(
            self.storage,
            self.store,
            {"max_concurrent": self.workers},
            seconds_per_trial=1.0,
            source=tuner,
        )
        dispatcher = Dispatcher(
            [trial for trial in trials if states[trial.trial_id] in OPEN],
            work,
            f"driver {self.dice.random()}",
            slots=self.workers,
        )
        flights: dict[str, Pack] = {}
        turn = 0
        while not (dispatcher.finished and not flights):
            turn += 1
            if turn == dies_after:
                return False  # and nobody closes anything: a SIGKILL
            pack = dispatcher.next_pack(f"pack {turn}")
            if pack is not None:
                flights[f"pack {turn}"] = pack
            elif flights:
                key = self.dice.choice(list(flights))
                if self._one_epoch(dispatcher, key, flights[key]):
                    dispatcher.ended(key, None)
                    del flights[key]
        dispatcher.close()
        return True

    def _one_epoch(self, dispatcher: Dispatcher, key: str, pack: Pack) -> bool:
        """One epoch of the pack's first trial that has not ended; returns whether that was the
        pack's last."""
        waiting = [
            trial for trial in pack.trials if trial.trial_id in dispatcher._flights[key].left
        ]
        config = TrialConfig.model_validate(waiting[0].config)
        epoch = self.checkpoints.get(config.trial_id, 0)
        if epoch == 0 or config.trial_id not in self.checkpoints:
            dispatcher.events(key, [TrialEvent(trial_id=config.trial_id)])
        rule = pack.stop_above.get(config.trial_id, {})
        stops = epoch > 0 and losses(config)[epoch - 1] > rule.get(epoch, float("inf"))
        if not stops and epoch < len(losses(config)):
            self.checkpoints[config.trial_id] = epoch + 1
            dispatcher.events(
                key, [TrialEvent(trial_id=config.trial_id, epoch=epochs_of(config)[epoch])]
            )
            return False
        outcome = ending(config, epoch)
        self.ended[config.trial_id] += 1
        dispatcher.events(key, [TrialEvent(trial_id=config.trial_id, outcome=outcome)])
        return len(waiting) == 1


def played(
    store: Store,
    storage: Path,
    *,
    workers: int = 1,
    search: str | None = None,
    budget: int | None = 5,
) -> Played:
    return Played(store, storage, plan(search, budget), workers)


def tuner_for(tuning: TuningPlan, store: Store, *, plans: bool = True) -> Tuner:
    return Tuner(tuning, KEY, certain(tuning), store, plans=plans)


def record_all(store: Store, trials: Iterable[PlannedTrial]) -> None:
    """Each trained to its end."""
    run_id = store.begin_run(RUN)
    for trial in trials:
        store.record(
            ending(TrialConfig.model_validate(trial.config), 4), run_id=run_id, spectrum=None
        )


def by_stage(rows: list[TrialRow]) -> Counter[tuple[str, str]]:
    return Counter((row.place.side, row.place.stage) for row in rows if row.place is not None)


@pytest.mark.parametrize(("search", "workers"), [("tpe", 1), ("random", 2), ("tpe", 5)])
def test_stages_follow_with_equal_budgets(
    store: Store, tmp_path: Path, search: str, workers: int
) -> None:
    game = played(store, tmp_path, workers=workers, search=search)
    assert game.run()
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


def test_kills_lose_and_repeat_nothing(store: Store, tmp_path: Path) -> None:
    game = played(store, tmp_path, workers=3)
    for _ in range(10):
        game.run(dies_after=game.dice.randint(1, 40))
    assert game.run()
    rows = store.trials(KEY)
    assert {row.state for row in rows} == {"done", "pruned"}
    assert set(game.ended) == {row.trial_id for row in rows}
    assert set(game.ended.values()) == {1}
    assert by_stage(rows)["narrow", "stage2"] == by_stage(rows)["wide", "stage2"] == 5


def test_a_larger_budget_goes_on(store: Store, tmp_path: Path) -> None:
    assert played(store, tmp_path, budget=3).run()
    first = table(store)
    assert played(store, tmp_path, budget=6).run()
    more = table(store)
    assert [row for row in more if row in first and " stage2 " in row[0]] == [
        r for r in first if " stage2 " in r[0]
    ]
    assert played(store, tmp_path, budget=3).run()
    assert table(store) == first
    with open_store(f"sqlite:///{tmp_path}/other.db") as other:
        assert played(other, tmp_path, budget=6).run()
        assert table(other) == more


def test_a_grid_is_planned_whole(store: Store, tmp_path: Path) -> None:
    game = played(store, tmp_path, workers=3, search="grid", budget=None)
    assert len(list(game.tuning.certain())) == 2 * (2 + 20)
    assert game.run()
    rows = store.trials(KEY)
    assert len(rows) == game.tuning.total == 2 * (2 + 20 + 2)
    assert {row.state for row in rows} == {"done"}
    with open_store(f"sqlite:///{tmp_path}/search.db") as other:
        assert played(other, tmp_path, search="random", budget=20).run()
        assert by_stage(other.trials(KEY)) == by_stage(rows)


def test_a_left_pruned_result_counts_for_a_search(store: Store, tmp_path: Path) -> None:
    tuning = plan()
    tuner = tuner_for(tuning, store)
    trial = tuning.searched("wide", 1, (0, 0))
    store.register(KEY, [trial])
    folder = trial_directory(tmp_path, trial.trial_id)
    folder.mkdir(parents=True)
    outcome = TrialOutcome(trial_id=trial.trial_id, state="pruned", cause="not good enough")
    TrialFolder(folder, trial.trial_id).write_result(outcome, None)
    recorder = Recorder(store, FolderStorage(tmp_path), store.begin_run(RUN))
    assert recorder.recover([trial], note=print) == []
    assert store.states([trial.trial_id]) == {trial.trial_id: "planned"}
    [(_, taken)] = recorder.recover([trial], note=print, may_be_pruned=tuner.is_searched)
    assert taken
    assert store.states([trial.trial_id]) == {trial.trial_id: "pruned"}


def test_a_side_without_results_has_no_finals(
    store: Store,
) -> None:
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
    assert by_stage(store.trials(KEY)) == {
        ("narrow", "stage1"): 2, ("narrow", "stage2"): 2, ("wide", "stage1"): 2, ("wide", "stage2"): 2,
        ("wide", "final"): 2,
    }  # fmt: skip


def test_a_retried_trial_may_be_stopped_again(store: Store, tmp_path: Path) -> None:
    game = played(store, tmp_path)
    assert game.run()
    before = table(store)
    *_, trial = (row.planned() for row in store.trials(KEY) if row.state == "pruned")
    fail(store, trial.trial_id, cause="a cause", run_id=1)
    store.reset([trial.trial_id])
    retry = tuner_for(game.tuning, store, plans=False)
    assert (retry.more(busy=()), retry.over, retry.is_searched(trial)) == (None, True, True)
    above = retry.stop_above(trial)
    reached = next(row for row in before if row[1] == trial.trial_id)[3]
    assert reached[-1] > above[len(reached)]
    tuner_for(plan(budget=1), store).start()
    assert retry.stop_above(trial) == {}, (
        "another driver, with a smaller budget, has dropped it meanwhile"
    )


@pytest.mark.parametrize("cell", [(0, 0), (4, 3)])
def test_another_drivers_plan_is_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch, cell: tuple[int, int]
) -> None:
    """It knew of other results then, so its choice may be another: here at least one of these two
    is."""
    tuning = plan(budget=3)
    tuner = tuner_for(tuning, store)
    record_all(store, tuner.start())
    read, theirs = Store.trials, tuning.searched("narrow", 1, cell)

    def read_while_another_driver_plans(self: Store, key: StudyKey) -> list[TrialRow]:
        rows = read(self, key)
        if len(rows) == 4:
            self.register(key, [*(row.planned() for row in rows), theirs])
        return rows

    monkeypatch.setattr(Store, "trials", read_while_another_driver_plans)
    assert tuner.more(busy=()) == [theirs]
    assert [row.planned() for row in store.trials(KEY)][4:] == [theirs]


def test_a_new_best_brings_new_finals(store: Store) -> None:
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
    best = [
        EpochMetrics(
            epoch=1, tokens=1, train_loss=1.0, valid_loss=1.0, averaging=False, seconds=1.0
        )
    ]
    store.record(
        TrialOutcome(trial_id=late.trial_id, state="done", epochs=tuple(best)),
        run_id=run_id,
        spectrum=None,
    )
    again = tuner_for(tuning, store)
    finals = [trial for trial in again.start() if " final " in trial.name]
    assert not again.over
    assert [trial.config for trial in finals if trial.name.startswith("wide")] == [
        {**late.config, "seed": seed} for seed in (11, 12)
    ]
    assert {trial.trial_id for trial in finals if trial.name.startswith("narrow")} < old
