"""What runs in a worker process: the trials of one pack, one after another, each one's trouble its
own."""

from __future__ import annotations

import importlib
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from orchestrator.storage import on_this_machine
from orchestrator.store import PlannedTrial
from orchestrator.worker.failures import BrokenProcessError, HaltError, cause_of, gpu_is_lost
from orchestrator.worker.messages import Job, Pack, TrialEvent
from orchestrator.worker.outbox import REPORT_EVERY_S, Outbox
from orchestrator.worker.stacked_pack import StackedPack
from trainables.errors import UserError
from trainables.pulse import PULSE
from trainables.runtime import Runtime
from trainables.trial_folder import SupersededError, TrialFolder, TrialOutcome


def run_pack(
    pack: Pack,
    job: Job,
    send: Callable[[str], None],
    running: Callable[[str], None] | None = None,
    stopped: Callable[[str], bool] = lambda _: False,
) -> None:
    """Train or measure the trials in their order and send their events, several in one message
    where trials are short.

    `running` is told the name of the trial that runs, after every message again: with each one, Ray
    calls this process by its own function. `stopped` says by trial id, of those that are trained as
    one, which are to leave their mates. Raises BrokenProcessError, with the rest of the pack not
    started, where no trial could run any more."""
    os.environ["OMP_NUM_THREADS"] = str(job.options.runtime.threads)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(job.options.runtime.threads)
    outbox = Outbox(send, running)
    place = _place(job.options.runtime.device)
    if pack.stack > 1:
        with _telling_halt(outbox, pack.trials[0].trial_id):
            StackedPack(pack, job, outbox, place).run(stopped)
        return
    was_long = True
    for trial in pack.trials:
        outbox.running = trial.name
        PULSE.begin(trial.trial_id)
        start_s = time.monotonic()
        outbox.add(TrialEvent(trial_id=trial.trial_id, place=place), now=was_long)
        with _telling_halt(outbox, trial.trial_id):
            outcome = _outcome(trial, pack, job, outbox)
        was_long = time.monotonic() - start_s >= REPORT_EVERY_S
        # Sent together with the next trial's start: one message, and the driver knows what runs if
        # we die.
        outbox.hold(TrialEvent(trial_id=trial.trial_id, outcome=outcome))
        if outcome.state == "failed":
            # It leaves no file by which the driver could tell it from the next one, should that
            # hang or kill us.
            outbox.flush()
            if gpu_is_lost(job.options.runtime):
                raise BrokenProcessError(outcome.cause)
    outbox.flush()


@contextmanager
def _telling_halt(outbox: Outbox, trial_id: str) -> Iterator[None]:
    """Send all events before the process ends, and where no other process can go on either,
    that."""
    try:
        yield
    except BrokenProcessError as error:
        if isinstance(error, HaltError):
            outbox.hold(TrialEvent(trial_id=trial_id, halt=str(error)))
        outbox.flush()
        raise


def _place(device: str) -> str:
    """This machine, and the GPU that Ray gave this process."""
    host = socket.gethostname()
    return (
        f"{host}, GPU {os.environ.get('CUDA_VISIBLE_DEVICES', '?')}"
        if device.startswith("cuda")
        else host
    )


def _outcome(trial: PlannedTrial, pack: Pack, job: Job, outbox: Outbox) -> TrialOutcome:
    """The trial's outcome; what it raises makes it a failed one, unless it is no failure of a
    trial: see `cause_of`."""
    folder = None
    try:
        runtime = on_this_machine(job.options.runtime, job.options.data)
        with job.options.storage.working(trial.trial_id) as folder:
            try:
                return _run(trial, pack, job, folder, runtime, outbox)
            except (
                Exception,
                SystemExit,
            ) as error:  # any trouble is this trial's alone; it is reported, not swallowed
                cause = cause_of(error, folder, job.options.storage, job.options.runtime)
    except (UserError, SupersededError, OSError) as error:
        cause = cause_of(error, None, job.options.storage, job.options.runtime)
    return TrialOutcome(trial_id=trial.trial_id, state="failed", cause=cause)


def _run(
    trial: PlannedTrial, pack: Pack, job: Job, folder: TrialFolder, runtime: Runtime, outbox: Outbox
) -> TrialOutcome:
    """Train the trial, or measure it where that is assigned."""

    def note(text: str) -> None:
        outbox.add(
            TrialEvent(
                trial_id=trial.trial_id, note=job.options.storage.in_words_of_user(text, folder)
            )
        )

    if pack.lacking:
        measure = job.functions.measure_kept or _of_trainables("measure_kept")
        measure(
            trial.validated, directory=folder.path, runtime=runtime, names=pack.lacking, note=note
        )
        return TrialOutcome(trial_id=trial.trial_id, state="done")
    folder.path.mkdir(parents=True, exist_ok=True)
    run_trial: Callable[..., TrialOutcome] = job.functions.run_trial or _of_trainables("run_trial")
    return run_trial(
        trial.validated,
        directory=folder.path,
        runtime=runtime,
        measurements=job.measurements,
        on_epoch=lambda metrics: outbox.add(TrialEvent(trial_id=trial.trial_id, epoch=metrics)),
        stop_above=pack.stop_above.get(trial.trial_id, {}),
        note=note,
    )


def _of_trainables(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(importlib.import_module("trainables.trial"), name)
    return function
