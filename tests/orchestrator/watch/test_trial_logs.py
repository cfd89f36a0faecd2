"""The tests read the logs with MLflow's and TensorBoard's own packages."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.store import Store, StudyKey
from orchestrator.watch.log_targets import open_sinks
from orchestrator.watch.trial_logs import Sink, TrialLogs
from tests.support.command import sweep
from tests.support.scripted_trials import SOUND, planned
from tests.support.store_rows import RUN
from trainables.trial_folder import EpochMetrics, TrialOutcome

KEY = StudyKey(study="logged", scale="smoke", corpus="none")
PLAN = planned([SOUND, SOUND + 1])
TRIAL = PLAN[0]
FINAL = {
    "spectrum@1": {"press_rank": 402, "rank_method": "gram"},
    "perplexity@1": {"test_perplexity": 56.5},
}


def epoch(number: int) -> EpochMetrics:
    loss = 5.0 / number
    metrics = EpochMetrics(
        epoch=number, tokens=number, train_loss=loss, valid_loss=loss, averaging=False, seconds=0.5
    )
    return (
        metrics.model_copy(update={"press_rank": 10 * number, "entropy_rank": 2.5})
        if number > 2
        else metrics
    )


def interrupted_and_resumed(store: Store, opened: Callable[[], list[Sink]]) -> list[str]:
    store.register(KEY, PLAN)
    attempts = store.claim([TRIAL.trial_id], owner="a driver", lease_s=60)
    notes: list[str] = []
    first = TrialLogs(opened(), store, KEY, notes.append)
    first.started(TRIAL.trial_id, TRIAL.name, 3)
    for number in (1, 2):
        first.epoch(TRIAL.trial_id, epoch(number))
        store.record_epochs({TRIAL.trial_id: [epoch(number)]}, attempts=attempts)
    first.close()
    second = TrialLogs(opened(), store, KEY, notes.append)
    second.started(TRIAL.trial_id, TRIAL.name, 3)
    second.started("f" * 64, "of a study that another command has planned without it meanwhile", 3)
    for number in (2, 3, 4):
        second.epoch(TRIAL.trial_id, epoch(number))
    epochs = tuple(map(epoch, (1, 2, 3, 4)))
    outcome = TrialOutcome(trial_id=TRIAL.trial_id, state="done", epochs=epochs, measurements=FINAL)
    run_id = store.begin_run(RUN)
    store.record(outcome, run_id=run_id, spectrum=None)
    second.finished(TRIAL.name, outcome)
    other = TrialOutcome(
        trial_id=PLAN[1].trial_id,
        state="diverged",
        cause="The loss is not finite.",
        epochs=epochs[:2],
    )
    store.record(other, run_id=run_id, spectrum=None)
    second.complete()
    second.close()
    return notes


def complete_again(log: str, store: Store, storage: Path) -> None:
    with contextlib.closing(
        TrialLogs(open_sinks([log], KEY, storage), store, KEY, pytest.fail)
    ) as logs:
        logs.complete()


def test_tensorboard_has_each_epoch_once(store: Store, tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    assert interrupted_and_resumed(store, lambda: open_sinks(["tensorboard"], KEY, tmp_path)) == []
    folder = tmp_path / "tensorboard" / "logged-smoke-none"
    read = accumulator.EventAccumulator(str(folder / TRIAL.name)).Reload()
    curve = read.Scalars("perplexity/validation")
    assert [point.step for point in curve] == [1, 2, 3, 4]
    assert [point.value for point in curve] == pytest.approx(
        [math.exp(5.0 / n) for n in (1, 2, 3, 4)]
    )
    assert [point.value for point in read.Scalars("press_rank")] == [402.0]
    assert [(point.step, point.value) for point in read.Scalars("rank/Press")] == [
        (3, 30.0),
        (4, 40.0),
    ]
    assert "_hparams_/session_start_info" in read.summary_metadata
    other = accumulator.EventAccumulator(str(folder / PLAN[1].name)).Reload()
    assert [point.step for point in other.Scalars("loss/train")] == [1, 2]
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    complete_again("tensorboard", store, tmp_path)
    after = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert after == before, "a complete log must not change"


def test_tensorboard_misses_a_changed_value(store: Store, tmp_path: Path) -> None:
    interrupted_and_resumed(store, lambda: open_sinks(["tensorboard"], KEY, tmp_path))
    (log,) = open_sinks(["tensorboard"], KEY, tmp_path)
    held = {"press_rank": 402.0, "test_perplexity": 56.5}
    assert log.holds(TRIAL, "done", held)
    assert not log.holds(TRIAL, "done", {**held, "test_perplexity": 57.0})


def test_mlflow_has_one_run_per_trial(store: Store, tmp_path: Path) -> None:
    tracking = pytest.importorskip("mlflow.tracking", reason="MLflow is not installed")
    sinks = [f"mlflow=sqlite:///{tmp_path}/mlflow.db"]
    assert interrupted_and_resumed(store, lambda: open_sinks(sinks, KEY, tmp_path)) == []
    complete_again(sinks[0], store, tmp_path)
    client = tracking.MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    experiment = client.get_experiment_by_name("logged-smoke-none")
    runs = {
        run.data.tags["trial_id"]: run for run in client.search_runs([experiment.experiment_id])
    }
    assert len(client.search_runs([experiment.experiment_id])) == 2
    run = runs[TRIAL.trial_id]
    assert (run.info.run_name, run.info.status, run.data.tags["state"]) == (
        TRIAL.name,
        "FINISHED",
        "done",
    )
    assert run.data.params["output_layer.name"] == "softmax"
    assert run.data.metrics["press_rank"] == 402.0
    curve = client.get_metric_history(run.info.run_id, "perplexity/validation")
    assert sorted(point.step for point in curve) == [1, 2, 3, 4]
    entropy_rank = client.get_metric_history(run.info.run_id, "rank/entropy")
    assert sorted((point.step, point.value) for point in entropy_rank) == [(3, 2.5), (4, 2.5)]
    other = runs[PLAN[1].trial_id]
    assert (other.info.status, other.data.tags["cause"]) == ("FAILED", "The loss is not finite.")


class Broken:
    name, address = "Broken", "somewhere"

    def __getattr__(self, method: str) -> None:
        raise ConnectionError("the server is gone")


def test_failing_log_is_noted_once(store: Store, tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    broken: Any = Broken()
    notes = interrupted_and_resumed(
        store, lambda: [broken, *open_sinks(["tensorboard"], KEY, tmp_path)]
    )
    assert [note.partition(" (")[0] for note in notes] == ["Broken at somewhere failed"] * 2
    assert len(list((tmp_path / "tensorboard").rglob("ended.*.done-*"))) == 1


def test_missing_mlflow_server_ends_command(
    tmp_path: Path,
) -> None:
    pytest.importorskip("mlflow.tracking", reason="MLflow is not installed")
    typed = ("gss_grid", "--scale", "smoke", "--log-to", "mlflow=http://127.0.0.1:1")
    answer = sweep(*typed, "--storage", tmp_path)
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert "cannot use http://127.0.0.1:1 (" in answer.stderr.strip().splitlines()[-1]
    assert not (tmp_path / "results.db").exists()
