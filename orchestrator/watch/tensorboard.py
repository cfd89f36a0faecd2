"""TensorBoard's event files, in STORAGE/tensorboard/VARIANT/TRIAL NAME."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from zlib import crc32

from tensorboardX import SummaryWriter
from tensorboardX.summary import hparams

from orchestrator.store import PlannedTrial, StudyKey, TrialState
from orchestrator.watch.trial_logs import scalars
from orchestrator.words import file_name, short_id
from trainables.config import flat_values
from trainables.trial_folder import Epoch

FLUSH_S = 5


class TensorBoard:
    """A folder per trial, rewritten at each start, so that no curve has a point twice."""

    name = "TensorBoard"

    def __init__(self, key: StudyKey, storage: Path) -> None:
        self._folder = storage / "tensorboard" / key.variant
        self.address = str(self._folder)
        self._folder.mkdir(parents=True, exist_ok=True)

    def holds(self, trial: PlannedTrial, state: TrialState, metrics: Mapping[str, float]) -> bool:
        """Return whether a marker file records this state and these metrics."""
        return (self._folder_of(trial) / _mark(trial, state, metrics)).exists()

    def begin(self, trial: PlannedTrial) -> _Curves:
        """Replace the trial's event files."""
        folder = self._folder_of(trial)
        for path in (*folder.glob("events.*"), *folder.glob("ended.*")):
            path.unlink()
        return _Curves(trial, folder)

    def _folder_of(self, trial: PlannedTrial) -> Path:
        return self._folder / file_name(trial.name)


class _Curves:
    def __init__(self, trial: PlannedTrial, folder: Path) -> None:
        self._trial, self._folder, self._last_epoch = trial, folder, -1
        self._writer = SummaryWriter(str(folder), flush_secs=FLUSH_S)

    def add(self, epochs: Sequence[Epoch]) -> None:
        for epoch in epochs:
            if epoch.epoch > self._last_epoch:
                self._last_epoch = epoch.epoch
                for name, value in scalars(epoch).items():
                    self._writer.add_scalar(name, value, epoch.epoch)

    def end(self, state: TrialState, cause: str | None, metrics: Mapping[str, float]) -> None:
        if cause is not None:
            self._writer.add_text("cause", cause)
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, max(0, self._last_epoch))
        config = {
            key: value if isinstance(value, int | float | str) else str(value)
            for key, value in flat_values(self._trial.config).items()
        }
        for summary in hparams({"state": state, **config}, dict(metrics)):
            self._writer.file_writer.add_summary(summary)
        self._writer.close()
        (self._folder / _mark(self._trial, state, metrics)).touch()

    def interrupt(self) -> None:
        self._writer.close()


def _mark(trial: PlannedTrial, state: TrialState, metrics: Mapping[str, float]) -> str:
    values = crc32(repr(sorted(metrics.items())).encode())
    return f"ended.{short_id(trial.trial_id)}.{state}-{values:08x}"
