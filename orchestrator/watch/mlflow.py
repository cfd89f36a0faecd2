"""MLflow log: an experiment per study variant, a run per trial, found by trial id."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict

SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
}
"""Defaults of MLflow's environment: no telemetry, few log lines, and short timeouts, because the
driver waits for the server."""
for _name, _value in SETTINGS.items():
    os.environ.setdefault(_name, _value)  # read when MLflow is imported

from mlflow.entities import Metric, Param, Run  # noqa: E402
from mlflow.tracking import MlflowClient  # noqa: E402

from orchestrator.store import PlannedTrial, StudyKey, TrialState  # noqa: E402
from orchestrator.watch.trial_logs import scalars  # noqa: E402
from trainables.config import flat_values  # noqa: E402
from trainables.trial_folder import Epoch  # noqa: E402

STATUS: dict[TrialState, str] = {
    "done": "FINISHED",
    "pruned": "KILLED",
    "diverged": "FAILED",
    "failed": "FAILED",
}
INTERRUPTED = "KILLED"
NOT_IN_A_NAME = re.compile(r"[^\w\-./: ]")
LONGEST_PARAM, LONGEST_TAG, MOST_RUNS = 6_000, 5_000, 50_000
"""Limits of MLflow's protocol: characters of a parameter or tag, runs per answer."""


class MLflow:
    """An MLflow log. Runs are cached, and read again after this driver has changed them."""

    name = "MLflow"

    def __init__(self, key: StudyKey, uri: str) -> None:
        """Raises MLflow's own errors if `uri` cannot be reached."""
        self.address = uri
        self._tags = asdict(key)
        self._client = MlflowClient(uri)
        experiment = self._client.get_experiment_by_name(key.variant)
        self._experiment = (
            self._client.create_experiment(key.variant)
            if experiment is None
            else experiment.experiment_id
        )
        self._runs = self._search("tags.trial_id != ''")

    def holds(self, trial: PlannedTrial, state: TrialState, metrics: Mapping[str, float]) -> bool:
        """See `Sink`."""
        run = self._run_of(trial)
        return (
            run is not None
            and run.data.tags.get("state") == state
            and {*map(_safe_name, metrics)} <= run.data.metrics.keys()
        )

    def begin(self, trial: PlannedTrial) -> _Curves:
        """See `Sink`."""
        run = self._run_of(trial)
        self._runs.pop(trial.trial_id, None)
        if run is None:
            return _Curves(self._client, self._make_run(trial), set())
        self._client.update_run(run.info.run_id, status="RUNNING")
        points = self._client.get_metric_history(run.info.run_id, "seconds/epoch")
        return _Curves(self._client, run, {point.step for point in points})

    def _run_of(self, trial: PlannedTrial) -> Run | None:
        # Another driver may have created the run since this driver started.
        if trial.trial_id not in self._runs:
            self._runs |= self._search(f"tags.trial_id = '{trial.trial_id}'")
        return self._runs.get(trial.trial_id)

    def _search(self, filter_string: str) -> dict[str, Run]:
        runs = self._client.search_runs([self._experiment], filter_string, max_results=MOST_RUNS)
        return {run.data.tags["trial_id"]: run for run in runs}

    def _make_run(self, trial: PlannedTrial) -> Run:
        tags = {**self._tags, "trial_id": trial.trial_id}
        run = self._client.create_run(self._experiment, tags=tags, run_name=trial.name)
        params = [
            Param(_safe_name(key), str(value)[:LONGEST_PARAM])
            for key, value in flat_values(trial.config).items()
        ]
        self._client.log_batch(run.info.run_id, params=params)
        return run


class _Curves:
    def __init__(self, client: MlflowClient, run: Run, epochs: set[int]) -> None:
        self._client, self._id, self._epochs = client, run.info.run_id, epochs
        self._metrics = run.data.metrics.keys()

    def add(self, epochs: Sequence[Epoch]) -> None:
        new_epochs = [epoch for epoch in epochs if epoch.epoch not in self._epochs]
        self._log(
            [
                (_safe_name(name), value, epoch.epoch)
                for epoch in new_epochs
                for name, value in scalars(epoch).items()
            ]
        )
        self._epochs |= {epoch.epoch for epoch in new_epochs}

    def end(self, state: TrialState, cause: str | None, metrics: Mapping[str, float]) -> None:
        values = {_safe_name(name): value for name, value in metrics.items()}
        step = max(self._epochs, default=0)
        self._log([(name, values[name], step) for name in values.keys() - self._metrics])
        self._client.set_tag(self._id, "state", state)
        self._client.set_tag(self._id, "cause", (cause or "")[:LONGEST_TAG])
        self._client.set_terminated(self._id, STATUS[state])

    def interrupt(self) -> None:
        self._client.set_terminated(self._id, INTERRUPTED)

    def _log(self, points: Sequence[tuple[str, float, int]]) -> None:
        now_ms = int(time.time() * 1000)
        self._client.log_batch(
            self._id, metrics=[Metric(name, value, now_ms, step) for name, value, step in points]
        )


def _safe_name(name: str) -> str:
    return NOT_IN_A_NAME.sub("_", name)
