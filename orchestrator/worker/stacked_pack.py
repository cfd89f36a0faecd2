"""The trials of a pack that are trained as one: what each of them tells is what it tells alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from orchestrator.storage import on_this_machine
from orchestrator.store import PlannedTrial
from orchestrator.worker.failures import BrokenProcessError, cause_of
from orchestrator.worker.messages import Job, Pack, TrialEvent
from orchestrator.worker.outbox import Outbox
from trainables.config import LanguageTrialConfig
from trainables.pulse import PULSE
from trainables.trial_folder import EpochMetrics, SupersededError, TrialFolder, TrialOutcome

if TYPE_CHECKING:
    from trainables.trial import TrialTask


class StackedPack:
    """The pack of one worker."""

    def __init__(self, pack: Pack, job: Job, outbox: Outbox, place: str) -> None:
        self._pack, self._job, self._outbox, self._place = pack, job, outbox, place
        self._folders: dict[str, TrialFolder] = {}
        self._exits: dict[str, ExitStack] = {}
        """By trial id, how its folder is left."""
        self._why: str | None = None
        """How many trials are trained at a time, where that was measured, and by what."""

    def run(self, stopped: Callable[[str], bool]) -> None:
        """Train the trials, `Pack.stack` of them at a time, but for those `stopped`. Raises as
        `run_pack` does."""
        from trainables.stack import run_stack

        options = self._job.options
        ended = run_stack(
            self._tasks(),
            runtime=on_this_machine(options.runtime, options.data),
            measurements=self._job.measurements,
            most=self._most(),
            taken_up=self._tell_start,
            stopped=stopped,
        )
        try:
            for task, outcome in ended:
                self._end(task.config.trial_id, outcome)
        except BrokenProcessError:
            raise
        except Exception as error:  # of the step of all
            first = next(iter(self._folders.values()), None)
            raise BrokenProcessError(
                cause_of(error, first, options.storage, options.runtime)
            ) from error
        finally:
            ended.close()
            self._outbox.flush()

    def _most(self) -> int:
        """How many trials are trained at a time; their logs tell why."""
        runtime, trials = self._job.options.runtime, self._pack.trials
        if not runtime.device.startswith("cuda"):
            return self._pack.stack
        import torch

        from trainables.stack import chosen_size

        configs = [trial.validated for trial in trials]
        models = [config for config in configs if isinstance(config, LanguageTrialConfig)]
        here = on_this_machine(runtime, self._job.options.data)
        size, self._why = chosen_size(models, here, self._pack.stack, torch.cuda.mem_get_info()[0])
        self._outbox.hold(TrialEvent(trial_id=trials[0].trial_id, note=self._why))
        return size

    def _tasks(self) -> Iterator[TrialTask]:
        """Every trial when its turn comes, with its folder."""
        from trainables.trial import TrialTask

        for trial in self._pack.trials:
            exits = self._exits[trial.trial_id] = ExitStack()
            folder = exits.enter_context(self._job.options.storage.working(trial.trial_id))
            self._folders[trial.trial_id] = folder
            yield TrialTask(
                trial.validated,
                folder.path,
                partial(self._tell_epoch, trial.trial_id),
                self._pack.stop_above.get(trial.trial_id, {}),
                partial(self._tell_note, trial, folder),
            )

    def _tell_start(self, task: TrialTask) -> None:
        PULSE.begin(task.config.trial_id)
        if self._why is not None:
            task.directory.mkdir(parents=True, exist_ok=True)
            self._folders[task.config.trial_id].log(self._why)
        self._outbox.running = f"{self._pack.stack} trials"
        self._outbox.add(TrialEvent(trial_id=task.config.trial_id, place=self._place), now=True)

    def _tell_epoch(self, trial_id: str, metrics: EpochMetrics) -> None:
        self._outbox.add(TrialEvent(trial_id=trial_id, epoch=metrics))

    def _tell_note(self, trial: PlannedTrial, folder: TrialFolder, text: str) -> None:
        words = self._job.options.storage.in_words_of_user(text, folder)
        self._outbox.add(TrialEvent(trial_id=trial.trial_id, note=words))

    def _end(self, trial_id: str, outcome: TrialOutcome | Exception) -> None:
        """Tell a trial's end, with its files in the storage. One that another worker has taken over
        is left to it."""
        from trainables.stack import StoppedError

        options, folder = self._job.options, self._folders.pop(trial_id)
        try:
            with self._exits.pop(trial_id):
                if isinstance(outcome, SupersededError):
                    raise outcome
                if isinstance(outcome, Exception) and not isinstance(outcome, StoppedError):
                    cause = cause_of(outcome, folder, options.storage, options.runtime)
                    outcome = TrialOutcome(trial_id=trial_id, state="failed", cause=cause)
        except SupersededError:
            return
        if isinstance(outcome, StoppedError):
            self._outbox.add(TrialEvent(trial_id=trial_id, left=True), now=True)
        else:
            self._outbox.add(TrialEvent(trial_id=trial_id, outcome=outcome), now=True)
