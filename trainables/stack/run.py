"""Several trials of the same shapes, trained as one; what each of them leaves is what it leaves
alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack

from trainables.config import PERPLEXITY, SPECTRUM
from trainables.device import wait
from trainables.runtime import Runtime
from trainables.stack.stack import Stack
from trainables.stack.validation import valid_losses
from trainables.training import STEPS_PER_LOOK, DivergedError, PrunedError, Trainer
from trainables.trial import TrialRun, TrialTask
from trainables.trial_folder import TrialOutcome

Ended = tuple[TrialTask, TrialOutcome | Exception]
"""A trial with its outcome, or with what came between."""


def run_stack(
    tasks: Iterable[TrialTask],
    *,
    runtime: Runtime,
    measurements: Sequence[str] = (PERPLEXITY, SPECTRUM),
    most: int,
    taken_up: Callable[[TrialTask], None] = lambda _: None,
) -> Generator[Ended]:
    """Train and measure trials, at most `most` at a time, the next one as soon as one has ended;
    yield them as they end.

    All have the same `stack_key`. An outcome is on disk before it is yielded, as `run_trial` leaves
    it. What a trial of its own raises, at its start, at the end of an epoch or in its measurements,
    is yielded in place of its outcome, and its mates go on; what comes of the step of all, or of
    their validation, is raised. `taken_up` gets every trial that is about to start."""
    waiting, live = iter(tasks), list[TrialRun]()
    with ExitStack() as folders:
        while True:
            while len(live) < most and (task := next(waiting, None)) is not None:
                taken_up(task)
                run = TrialRun(task, runtime, measurements)
                try:
                    folders.enter_context(run)
                    outcome = run.earlier or _ended_before(run)
                except Exception as error:  # its own trouble, as that of a pack's single trial is
                    yield task, error
                    continue
                if outcome is None:
                    live.append(run)
                else:
                    yield task, outcome
            if not live:
                return
            ended = _train(live)
            for run, ending in ended.items():
                live.remove(run)
                yield run.task, _recorded(run, ending)


def _ended_before(run: TrialRun) -> TrialOutcome | None:
    """The outcome of a trial whose last checkpoint is of its end, or of an epoch that prunes it."""
    if run.trainer.finished:
        return run.end()
    try:
        run.trainer.raise_if_pruned(run.task.stop_above)
    except PrunedError as error:
        return run.end(error)
    return None


def _train(live: Sequence[TrialRun]) -> dict[TrialRun, Exception | None]:
    """Step by step until one of them or several have come to an end; these, each with what ended
    it."""
    stack, ended = Stack([run.trainer for run in live]), dict[TrialRun, Exception | None]()
    while not ended:
        started = time.monotonic()
        stack.step()
        ending = [trainer for trainer in stack.trainers if trainer.ends_epoch]
        if ending or any(trainer.progress.step % STEPS_PER_LOOK == 0 for trainer in stack.trainers):
            # Else the first to look would wait for the steps of all, uncounted.
            wait(live[0].trainer.runtime.device)
        seconds = (time.monotonic() - started) / len(live)
        losses = _valid_losses(ending)
        for run in live:
            trouble = _trouble(run, seconds, losses.get(run.trainer), len(live))
            if trouble is not None or run.trainer.finished:
                ended[run] = trouble
    for run in ended:
        stack.leave(run.trainer)
    # What ended a trial holds this frame: without this, the stack would outlive its successors.
    del stack
    return ended


def _valid_losses(trainers: Sequence[Trainer]) -> dict[Trainer, float]:
    """Validate them at once, unless one can do that itself; a share of the time is of every
    trial's whole."""
    if len(trainers) < 2:
        return {}
    started = time.monotonic()
    losses = dict(zip(trainers, valid_losses(trainers), strict=True))
    seconds = (time.monotonic() - started) / len(trainers)
    for trainer in trainers:
        trainer.progress.wall_seconds += seconds
    return losses


def _trouble(
    run: TrialRun,
    step_s: float,
    valid_loss: float | None,
    together: int,
) -> Exception | None:
    """What ends the trial after a step; None if nothing does but its last epoch."""
    trainer = run.trainer
    try:
        trainer.settle(step_s, run.checkpoints, run.tell, valid_loss, together)
        if not trainer.finished:
            trainer.raise_if_pruned(run.task.stop_above)
    except (DivergedError, PrunedError) as ending:
        return ending.with_traceback(None)
    except Exception as ending:
        return ending
    return None


def _recorded(run: TrialRun, ending: Exception | None) -> TrialOutcome | Exception:
    """Measure and record a trial that has ended; return what came between, if something did."""
    try:
        if ending is None or isinstance(ending, DivergedError | PrunedError):
            return run.end(ending)
        return ending
    except Exception as error:
        return error
    finally:
        run.__exit__()
