"""TensorBoard's event files: STORAGE/tensorboard/VARIANT/TRIAL NAME, curves, and hyper-parameters for its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tensorboardX import SummaryWriter
from tensorboardX.summary import hparams

from orchestrator.store import PlannedTrial, StudyKey, TrialState
from orchestrator.watch.sink import scalars
from trainables.config import flat_values
from trainables.trial_folder import EpochMetrics

FLUSH_S = 5


class TensorBoard:
    """A folder a trial, written anew when the trial starts or goes on: curves never have a point twice."""

    name = "TensorBoard"

    def __init__(self, key: StudyKey, storage: Path) -> None:
        self._folder = storage / "tensorboard" / key.variant
        self.place = str(self._folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._running: dict[str, _Curves] = {}

    def holds(self, trial: PlannedTrial, state: TrialState, metrics: Mapping[str, float]) -> bool:
        """By the name of its last event file."""
        return any(self._folder_of(trial).glob(f"events*{_suffix(trial.trial_id, state, metrics)}"))

    def begin(self, trial: PlannedTrial, epochs: Sequence[EpochMetrics]) -> None:
        """Write what there is so far."""
        earlier = self._running.pop(trial.trial_id, None)
        if earlier is not None:
            earlier.writer.close()
        folder = self._folder_of(trial)
        for old in folder.glob("events.out.tfevents.*"):
            old.unlink()
        self._running[trial.trial_id] = _Curves(trial, folder)
        for epoch in epochs:
            self.epoch(trial.trial_id, epoch)

    def epoch(self, trial_id: str, epoch: EpochMetrics) -> None:
        """Add a point to each curve."""
        curves = self._running[trial_id]
        if epoch.epoch > curves.last_epoch:
            curves.last_epoch = epoch.epoch
            for name, value in scalars(epoch).items():
                curves.writer.add_scalar(name, value, epoch.epoch)

    def end(self, trial_id: str, state: TrialState, cause: str | None, metrics: Mapping[str, float]) -> None:
        """Write the final metrics and the row of the table of hyper-parameters, to a file that says so by its name."""
        curves = self._running.pop(trial_id)
        if cause is not None:
            curves.writer.add_text("cause", cause)
        curves.writer.close()
        last = SummaryWriter(str(curves.folder), filename_suffix=_suffix(trial_id, state, metrics))
        for name, value in metrics.items():
            last.add_scalar(name, value, curves.last_epoch)
        for summary in hparams({"state": state, **_parameters(curves.trial.config)}, dict(metrics)):
            last.file_writer.add_summary(summary)
        last.close()

    def close(self) -> None:
        """Close the files of trials that were interrupted."""
        for curves in self._running.values():
            curves.writer.close()
        self._running.clear()

    def _folder_of(self, trial: PlannedTrial) -> Path:
        return self._folder / trial.name.replace("/", "_")


class _Curves:
    """A trial's open event file."""

    def __init__(self, trial: PlannedTrial, folder: Path) -> None:
        self.trial, self.folder, self.last_epoch = trial, folder, 0
        self.writer = SummaryWriter(str(folder), flush_secs=FLUSH_S)


def _suffix(trial_id: str, state: TrialState, metrics: Mapping[str, float]) -> str:
    return f".{trial_id[:12]}.{state}-{len(metrics)}"


def _parameters(config: Mapping[str, Any]) -> dict[str, Any]:
    flat = flat_values(config)
    return {key: value if isinstance(value, bool | int | float | str) else str(value) for key, value in flat.items()}
