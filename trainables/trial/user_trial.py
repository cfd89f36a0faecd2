"""The interface of a user's own trial: seed, device, folders, reports and checkpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from trainables.config import USER, Command, Trainable
from trainables.errors import UserError
from trainables.pulse import PULSE
from trainables.runtime import Runtime
from trainables.training import DivergedError, PrunedError
from trainables.trial.state import GlobalRandom, restore, snapshot
from trainables.trial_folder import Checkpoints, Epoch, Metric, UserEpoch, check_metrics

QUIET_S = 3600.0
"""Seconds between two reports after which a trial counts as stalled, unless they were slower."""
RANDOM = "random states"


class Trial:
    """A running trial of a user's `Trainable`."""

    def __init__(
        self,
        config: Trainable | Command,
        runtime: Runtime,
        checkpoints: Checkpoints,
        on_epoch: Callable[[Epoch], None],
        stop_above: Mapping[int, float],
    ) -> None:
        self.seed = config.seed
        self.device = runtime.device
        """`cpu` or `cuda`."""
        self.threads = runtime.threads
        """CPU threads of the trial."""
        self.data_dir = runtime.data_dir or Path("data")
        """Folder of `--data-dir`, by default `data`."""
        self.epochs = checkpoints.folder.epochs()
        """Reported epochs, also those of earlier attempts."""
        self._checkpoints, self._on_epoch = checkpoints, on_epoch
        self._stop_above, self._goal = stop_above, runtime.goal
        self._every_s = runtime.checkpoint_every_s
        self._taken = {*config.model_dump(), "seconds", "wall_seconds", "peak_memory_mib"}
        self._random = GlobalRandom(runtime.device)
        self._random.seed(self.seed)
        self._objects: dict[str, Any] | None = None
        self._last_s, self.has_reported = time.monotonic(), False
        """Time of this attempt's start or last report, and whether it has reported."""

    @property
    def folder(self) -> Path:
        """Folder for the trial's own files, which survive interruptions."""
        path = self._checkpoints.folder.path / "files"
        path.mkdir(exist_ok=True)
        return path

    def restore(self, **objects: Any) -> int:
        """Give the objects their state in the last checkpoint; return the next epoch, or 0.

        From now on, `report` saves the objects when a checkpoint is due. They are modules,
        optimizers, schedulers, tensors, arrays, random generators, dicts or lists. The random
        states of Python, numpy and torch are restored, too. Raises UserError for other objects and
        for a second call.
        """
        if self._objects is not None or self.has_reported:
            raise UserError("trial.restore: call it once, before trial.report, with all objects")
        self._objects = {**objects, RANDOM: self._random}
        snapshot(self._objects)  # an object that cannot be saved is an error now
        checkpoint = self._checkpoints.latest("cpu")
        if checkpoint is None:
            return 0
        tensors, state = checkpoint
        restore(self._objects, tensors, state["objects"])
        last_epoch: int = state["epoch"]
        self.epochs = [epoch for epoch in self.epochs if epoch.epoch <= last_epoch]
        self._checkpoints.folder.log(f"resumes after epoch {last_epoch}")
        self._stop_if_pruned()
        return last_epoch + 1

    def report(self, epoch: int, /, **metrics: Any) -> None:
        """Record metrics of an epoch, and save a checkpoint if one is due.

        Epochs increase. Raises DivergedError if a metric is not finite, PrunedError if a search
        stops the trial, UserError for other values than numbers.
        """
        is_first = not self.has_reported
        last: int = -1 if is_first else self.epochs[-1].epoch
        epoch = cast("int", number("epoch", epoch))
        if type(epoch) is not int or epoch <= last:
            raise UserError(f"trial.report: epochs must be 0, 1, ...; got {epoch!r} after {last}")
        numbers = self._checked(metrics)
        now_s = time.monotonic()
        point = UserEpoch(epoch=epoch, seconds=now_s - self._last_s, **numbers)
        self._last_s, self.has_reported = now_s, True
        if is_first:  # shows at which epoch this attempt resumed
            self.epochs = [earlier for earlier in self.epochs if earlier.epoch < epoch]
        self.epochs.append(point)
        self._checkpoints.folder.write_epochs(self.epochs if is_first else [point], again=is_first)
        PULSE.epoch = epoch
        PULSE.touch(max(QUIET_S, 10 * point.seconds))
        self._on_epoch(point)
        if self._objects is not None and self._checkpoints.due(self._every_s):
            self._save()
        self._stop_if_pruned()

    def _save(self) -> None:
        assert self._objects is not None
        tensors, objects = snapshot(self._objects)
        epoch = self.epochs[-1].epoch
        self._checkpoints.begin(epoch, tensors, {"objects": objects, "epoch": epoch})

    def _stop_if_pruned(self) -> None:
        if not self.epochs or self._goal is None:
            return
        last = self.epochs[-1]
        limit = self._stop_above.get(last.epoch + (self.epochs[0].epoch == 0))
        value = last.numbers.get(self._goal.metric)
        if limit is not None and value is not None and self._goal.loss(value) > limit:
            if self._objects is not None:  # a plan may want the whole trial later
                self._save()
                self._checkpoints.wait()
            raise PrunedError(
                f"stopped after epoch {last.epoch}: its {self._goal.metric} of {value:.5g} is "
                f"worse than {self._goal.loss(limit):.5g}, the limit from better trials"
            )

    def final_metrics(self, metrics: Any) -> dict[str, Metric]:
        """Return the trial's final metrics, by default those of the last epoch.

        Raises UserError for invalid metrics, DivergedError if a metric is not finite.
        """
        if metrics is not None and not isinstance(metrics, Mapping):
            raise UserError(f"train returned {str(metrics)[:80]}. Return a dict of metrics.")
        metrics = metrics or (self.epochs[-1].numbers if self.epochs else {})
        result = self._checked(metrics, str)
        if not result:
            raise UserError(
                'no final metrics. Return a dict, or print a JSON object, such as {"loss": 0.9}.'
            )
        return result

    def _checked(self, metrics: Mapping[Any, Any], *other_types: type) -> dict[str, Any]:
        values = {
            str(name): value if isinstance(value, other_types) else number(name, value)
            for name, value in metrics.items()
        }
        for name, value in values.items():
            if name.partition(".")[0] in self._taken or not name.isprintable():
                raise UserError(f"a metric cannot have the name {name!r}. Rename it.")
            if isinstance(value, float) and not math.isfinite(value):
                raise DivergedError(f"{name} became {value}")
        try:
            return dict(check_metrics(values, measurement=USER))
        except ValueError as error:
            raise UserError(str(error)) from error


def number(name: str, value: Any) -> int | float | bool:
    """Return a number as Python's own type. Raises UserError for anything else."""
    if not isinstance(value, int | float) and hasattr(value, "item"):
        with suppress(ValueError, RuntimeError, TypeError):
            value = value.item()  # of numpy or torch
    if not isinstance(value, int | float):
        raise UserError(f"the metric {name} must be a number; got {str(value)[:80]!r}")
    return value
