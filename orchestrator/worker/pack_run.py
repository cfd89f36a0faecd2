"""Run one pack in a worker. A failed trial does not affect the others.

Trials run one after another or, if possible, as one model.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from orchestrator.store import PlannedTrial
from orchestrator.worker.failures import BrokenProcessError, HaltError, cause_of, gpu_is_lost
from orchestrator.worker.messages import Job, Pack, TrialEvent
from orchestrator.worker.outbox import REPORT_EVERY_S, Outbox
from trainables import trial as originals
from trainables.config import LanguageTrialConfig
from trainables.errors import UserError
from trainables.pulse import PULSE
from trainables.trial_folder import BusyError, Epoch, SupersededError, TrialFolder, TrialOutcome

if TYPE_CHECKING:
    from trainables.trial import TrialTask

Result = TrialOutcome | BaseException


def run_pack(pack: Pack, job: Job, send: Callable[[str, str], None]) -> None:
    """Train or measure the trials and send their events, batched if trials are short.

    `send` gets a message (JSON) and the current trial's name. Raises BrokenProcessError if this
    process can run no further trial.
    """
    os.environ["OMP_NUM_THREADS"] = str(job.options.runtime.threads)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(job.options.runtime.threads)
    _PackRun(pack, job, Outbox(send)).run()


class _PackRun:
    def __init__(self, pack: Pack, job: Job, outbox: Outbox) -> None:
        self._pack, self._job, self._outbox = pack, job, outbox
        self._options, self._storage = job.options, job.options.storage
        self._trials = {trial.trial_id: trial for trial in pack.trials}
        self._folders: dict[str, TrialFolder] = {}
        self._exits: dict[str, ExitStack] = {}
        self._current_id = pack.trials[0].trial_id

    def run(self) -> None:
        results = self._run_stack() if self._pack.at_once > 1 else self._run_in_turn()
        try:
            for trial, result in results:
                self._end_trial(trial, result)
        except HaltError as error:
            self._outbox.hold(TrialEvent(trial_id=self._current_id, halt=str(error)))
            raise
        finally:
            results.close()
            self._outbox.flush()

    def _run_in_turn(self) -> Generator[tuple[PlannedTrial, Result]]:
        result: Result
        was_long = True
        for trial in self._pack.trials:
            start_s = time.monotonic()
            self._report_start(trial, trial.name, now=was_long)
            try:
                result = self._run(trial, self._enter_folder(trial))
            except (Exception, SystemExit) as error:  # reported, not swallowed
                result = error
            was_long = time.monotonic() - start_s >= REPORT_EVERY_S
            yield trial, result

    def _run_stack(self) -> Generator[tuple[PlannedTrial, Result]]:
        from trainables.stack import run_stack

        results = run_stack(
            self._tasks(),
            runtime=self._options.runtime,
            measurements=self._job.measurements,
            most=self._stack_size(),
            taken_up=self._report_stack_start,
        )
        try:
            for task, result in results:
                yield self._trials[task.config.trial_id], result
        except Exception as error:  # in the step that all trials share
            folder = next(iter(self._folders.values()), None)
            cause = cause_of(error, folder, self._storage, self._options.runtime)
            raise BrokenProcessError(cause) from error
        finally:
            results.close()

    def _stack_size(self) -> int:
        runtime = self._options.runtime
        if not runtime.device.startswith("cuda"):
            return self._pack.at_once
        from trainables.device import free_bytes
        from trainables.stack import chosen_size

        models = [trial.validated for trial in self._pack.trials]
        size, reason = chosen_size(
            [model for model in models if isinstance(model, LanguageTrialConfig)],
            runtime,
            self._pack.at_once,
            free_bytes(),  # including what the previous pack left in torch's cache
        )
        self._outbox.hold(TrialEvent(trial_id=self._current_id, note=reason))
        return size

    def _tasks(self) -> Iterator[TrialTask]:
        from trainables.trial import TrialTask

        for trial in self._pack.trials:
            yield TrialTask(
                trial.validated,
                self._enter_folder(trial).path,
                partial(self._report_epoch, trial),
                self._pack.stop_above.get(trial.trial_id, {}),
                partial(self._report_note, trial),
            )

    def _report_stack_start(self, task: TrialTask) -> None:
        trial = self._trials[task.config.trial_id]
        self._report_start(trial, f"{self._pack.at_once} trials", now=True)

    def _enter_folder(self, trial: PlannedTrial) -> TrialFolder:
        exits = self._exits[trial.trial_id] = ExitStack()
        folder = exits.enter_context(self._storage.working(trial.trial_id))
        self._folders[trial.trial_id] = folder
        return folder

    def _run(self, trial: PlannedTrial, folder: TrialFolder) -> TrialOutcome:
        runtime = self._options.runtime
        note, functions = partial(self._report_note, trial), self._job.functions
        if self._pack.unmeasured:
            measure = functions.measure_kept or originals.measure_kept
            measure(
                trial.validated,
                directory=folder.path,
                runtime=runtime,
                names=self._pack.unmeasured,
                note=note,
            )
            return TrialOutcome(trial_id=trial.trial_id, state="done")
        folder.path.mkdir(parents=True, exist_ok=True)
        run_trial: Callable[..., TrialOutcome] = functions.run_trial or originals.run_trial
        return run_trial(
            trial.validated,
            directory=folder.path,
            runtime=runtime,
            measurements=self._job.measurements,
            on_epoch=partial(self._report_epoch, trial),
            stop_above=self._pack.stop_above.get(trial.trial_id, {}),
            note=note,
        )

    def _end_trial(self, trial: PlannedTrial, result: Result) -> None:
        self._current_id = trial.trial_id
        folder = self._folders.pop(trial.trial_id, None)
        if isinstance(result, BusyError):
            self._outbox.add(TrialEvent(trial_id=trial.trial_id, is_busy=True), now=True)
            self._exits.pop(trial.trial_id).close()
            return
        try:
            with self._exits.pop(trial.trial_id):
                if isinstance(result, SupersededError):
                    raise result
                outcome = self._outcome(trial, result, folder)
        except SupersededError as error:
            if self._pack.at_once > 1:  # the other trials continue
                return
            raise BrokenProcessError(str(error)) from error
        except (UserError, OSError) as error:
            outcome = self._outcome(trial, error, None)
        failed = outcome.state == "failed"
        self._outbox.hold(TrialEvent(trial_id=trial.trial_id, outcome=outcome))
        # The end of one trial is sent with the start of the next, so that the driver knows which
        # trial runs if this process dies. A failed trial is sent now: it leaves no file that shows
        # its end.
        if failed or self._pack.at_once > 1:
            self._outbox.flush()
        if failed and gpu_is_lost(self._options.runtime):
            raise BrokenProcessError(outcome.cause)

    def _outcome(
        self, trial: PlannedTrial, result: Result, folder: TrialFolder | None
    ) -> TrialOutcome:
        if not isinstance(result, BaseException):
            return result
        cause = cause_of(result, folder, self._storage, self._options.runtime)
        return TrialOutcome(trial_id=trial.trial_id, state="failed", cause=cause)

    def _report_start(self, trial: PlannedTrial, name: str, *, now: bool) -> None:
        self._current_id = trial.trial_id
        self._outbox.trial_name = name
        PULSE.begin(trial.trial_id)
        device_name = _device_name(self._options.runtime.device)
        self._outbox.add(TrialEvent(trial_id=trial.trial_id, host=device_name), now=now)

    def _report_epoch(self, trial: PlannedTrial, metrics: Epoch) -> None:
        self._outbox.add(TrialEvent(trial_id=trial.trial_id, epoch=metrics))

    def _report_note(self, trial: PlannedTrial, text: str) -> None:
        words = self._storage.in_words_of_user(text, self._folders[trial.trial_id])
        self._outbox.add(TrialEvent(trial_id=trial.trial_id, note=words))


def _device_name(device: str) -> str:
    host = socket.gethostname()
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "?")
    return f"{host}, GPU {gpu}" if device.startswith("cuda") else host
