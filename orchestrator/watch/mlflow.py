"""MLflow: an experiment for each variant of a study, a run for each trial, found again by the trial's id."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence

SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
}
"""What MLflow is told by environment, where the user says nothing else: no telemetry, no lines about the tables that it
makes, and no long wait for a server that is gone, since the driver waits too."""
for _name, _value in SETTINGS.items():
    os.environ.setdefault(_name, _value)  # read when MLflow is imported

from mlflow.entities import Metric, Param, Run  # noqa: E402
from mlflow.tracking import MlflowClient  # noqa: E402

from orchestrator.store import PlannedTrial, StudyKey, TrialState  # noqa: E402
from orchestrator.watch.sink import scalars  # noqa: E402
from trainables.config import flat_values  # noqa: E402
from trainables.trial_folder import EpochMetrics  # noqa: E402

STATUS: dict[TrialState, str] = {"done": "FINISHED", "pruned": "KILLED", "diverged": "FAILED", "failed": "FAILED"}
INTERRUPTED = "KILLED"
NOT_IN_A_NAME = re.compile(r"[^\w\-./: ]")
MOST_PARAMS, MOST_METRICS = 100, 1000
"""What MLflow's protocol takes in one request."""
LONGEST_PARAM, LONGEST_TAG = 6000, 5000


class MLflow:
    """Curves have the epoch as their step; a run that goes on is told only the epochs that it has not got."""

    name = "MLflow"

    def __init__(self, key: StudyKey, uri: str) -> None:
        """Raises whatever MLflow raises where it cannot be reached there."""
        self.place = uri
        self._tags = {"study": key.study, "scale": key.scale, "corpus": key.corpus, "overrides": key.overrides}
        self._client = MlflowClient(uri)
        experiment = self._client.get_experiment_by_name(key.variant)
        self._experiment = (
            self._client.create_experiment(key.variant) if experiment is None else experiment.experiment_id
        )
        self._runs = {run.data.tags["trial_id"]: run for run in self._search("tags.trial_id != ''")}
        self._running: dict[str, _Curves] = {}

    def holds(self, trial: PlannedTrial, state: TrialState, metrics: Mapping[str, float]) -> bool:
        """By the tags and metrics of its run."""
        run = self._run_of(trial.trial_id)
        if run is None:
            return False
        return run.data.tags.get("state") == state and {*map(_named, metrics)} <= run.data.metrics.keys()

    def begin(self, trial: PlannedTrial, epochs: Sequence[EpochMetrics]) -> None:
        """Make its run, or go on with it."""
        run = self._run_of(trial.trial_id)
        steps: set[int] = set()
        if run is None:
            run = self._make_run(trial)
        else:
            self._client.update_run(run.info.run_id, status="RUNNING")
            steps = {point.step for point in self._client.get_metric_history(run.info.run_id, "loss/validation")}
        self._running[trial.trial_id] = curves = _Curves(run, steps)
        self._log_epochs(curves, epochs)

    def epoch(self, trial_id: str, epoch: EpochMetrics) -> None:
        """Add a point to each curve."""
        self._log_epochs(self._running[trial_id], [epoch])

    def end(self, trial_id: str, state: TrialState, cause: str | None, metrics: Mapping[str, float]) -> None:
        """Add the final metrics that the run has not got, and end it."""
        curves = self._running.pop(trial_id)
        run_id = curves.run.info.run_id
        now, step = _now_ms(), max(curves.epochs, default=0)
        new = {_named(name): value for name, value in metrics.items()}
        points = [Metric(name, new[name], now, step) for name in new.keys() - curves.run.data.metrics.keys()]
        self._log_metrics(run_id, points)
        self._client.set_tag(run_id, "state", state)
        self._client.set_tag(run_id, "cause", (cause or "")[:LONGEST_TAG])
        self._client.set_terminated(run_id, STATUS[state])
        self._runs[trial_id] = self._client.get_run(run_id)

    def close(self) -> None:
        """End the runs of trials that were interrupted; they go on in the next sweep."""
        for curves in self._running.values():
            self._client.set_terminated(curves.run.info.run_id, INTERRUPTED)
        self._running.clear()

    def _run_of(self, trial_id: str) -> Run | None:
        """Its run, also one that another driver has made since we began."""
        if trial_id not in self._runs:
            runs = self._search(f"tags.trial_id = '{trial_id}'")
            self._runs.update({trial_id: runs[0]} if runs else {})
        return self._runs.get(trial_id)

    def _search(self, which: str) -> list[Run]:
        runs: list[Run] = []
        token: str | None = None
        while True:
            page = self._client.search_runs([self._experiment], which, max_results=1000, page_token=token)
            runs += page
            token = page.token
            if not token:
                return runs

    def _make_run(self, trial: PlannedTrial) -> Run:
        tags = {**self._tags, "trial_id": trial.trial_id}
        run = self._client.create_run(self._experiment, tags=tags, run_name=trial.name)
        params = [Param(_named(key), str(value)[:LONGEST_PARAM]) for key, value in flat_values(trial.config).items()]
        for start in range(0, len(params), MOST_PARAMS):
            self._client.log_batch(run.info.run_id, params=params[start : start + MOST_PARAMS])
        self._runs[trial.trial_id] = run
        return run

    def _log_epochs(self, curves: _Curves, epochs: Sequence[EpochMetrics]) -> None:
        now = _now_ms()
        new = [epoch for epoch in epochs if epoch.epoch not in curves.epochs]
        points = [Metric(name, value, now, epoch.epoch) for epoch in new for name, value in scalars(epoch).items()]
        self._log_metrics(curves.run.info.run_id, points)
        curves.epochs |= {epoch.epoch for epoch in new}

    def _log_metrics(self, run_id: str, points: Sequence[Metric]) -> None:
        for start in range(0, len(points), MOST_METRICS):
            self._client.log_batch(run_id, metrics=points[start : start + MOST_METRICS])


class _Curves:
    """A run that goes on, and the epochs that it has."""

    def __init__(self, run: Run, epochs: set[int]) -> None:
        self.run, self.epochs = run, epochs


def _named(name: str) -> str:
    return NOT_IN_A_NAME.sub("_", name)


def _now_ms() -> int:
    return int(time.time() * 1000)
