"""Several trials of the same shapes, trained as one; what each of them leaves is what it leaves alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack

from trainables.config import PERPLEXITY, SPECTRUM
from trainables.runtime import Runtime
from trainables.stack import Stack, valid_losses
from trainables.training import DivergedError, PrunedError
from trainables.trial.trial_run import TrialRun, TrialTask
from trainables.trial_folder import TrialOutcome

Ended = tuple[TrialTask, TrialOutcome | Exception]
"""A trial with its outcome, or with what came between."""


class StoppedError(Exception):
    """Somebody asked to stop the trial."""


def run_stack(
    tasks: Iterable[TrialTask],
    *,
    runtime: Runtime,
    measurements: Sequence[str] = (PERPLEXITY, SPECTRUM),
    most: int,
    taken_up: Callable[[TrialTask], None] = lambda _: None,
    stopped: Callable[[str], bool] = lambda _: False,
) -> Generator[Ended]:
    """Train and measure trials, at most so many at a time, the next one as soon as one has ended; yields them as they
    end.

    All have the same `stack_key`. An outcome is on disk before it is yielded, as `run_trial` leaves it. What a trial of
    its own raises, at its start, at the end of an epoch or in its measurements, is yielded in place of its outcome, and
    its mates go on; what comes of the step of all is raised. `taken_up` is told of every trial that is about to start.
    `stopped` is asked by trial id, after every step, who is to leave: at a checkpoint, and StoppedError is yielded.
    """
    waiting, live = iter(tasks), list[TrialRun]()
    with ExitStack() as folders:
        while True:
            while len(live) < most and (task := next(waiting, None)) is not None:
                if stopped(task.config.trial_id):
                    yield task, StoppedError()
                    continue
                taken_up(task)
                run = TrialRun(task, runtime, measurements)
                try:
                    folders.enter_context(run)
                    if run.earlier is not None:
                        yield task, run.earlier
                    elif run.trainer.finished:
                        yield task, run.end()
                    else:
                        live.append(run)
                except Exception as error:  # its own trouble, as that of a pack's single trial is
                    yield task, error
            if not live:
                return
            for run, ending in _train(live, stopped):
                live.remove(run)
                yield run.task, _ended(run, ending)


def _train(live: Sequence[TrialRun], stopped: Callable[[str], bool]) -> list[tuple[TrialRun, Exception | None]]:
    """Step by step until one of them or several have come to an end; these, each with what ended it."""
    pruned = [(run, _pruned(run)) for run in live]
    if any(ending is not None for _, ending in pruned):
        return [(run, ending) for run, ending in pruned if ending is not None]
    stack = Stack([run.trainer for run in live])
    while True:
        started = time.monotonic()
        stack.step()
        ending = [trainer for trainer in stack.trainers if trainer.ends_epoch]
        losses = dict(zip(ending, valid_losses(ending), strict=True)) if len(ending) > 1 else {}
        seconds = (time.monotonic() - started) / len(live)
        settled = [(run, *_settled(run, seconds, losses.get(run.trainer), stopped)) for run in live]
        if any(over for _, over, _ in settled):
            break
    for run, over, _ in settled:
        if over:
            stack.leave(run.trainer)
    return [(run, ending) for run, over, ending in settled if over]


def _settled(
    run: TrialRun, step_s: float, valid_loss: float | None, stopped: Callable[[str], bool]
) -> tuple[bool, Exception | None]:
    """Whether the trial has come to its end, and by what."""
    trainer = run.trainer
    try:
        trainer.settle(step_s, run.checkpoints, run.tell, valid_loss)
        pruned = None if trainer.finished else _pruned(run)
        if pruned is None and not trainer.finished and stopped(run.task.config.trial_id):
            run.checkpoints.save(trainer.progress.step, *trainer.snapshot())
            return True, StoppedError()
    except Exception as ending:
        return True, ending
    return trainer.finished or pruned is not None, pruned


def _pruned(run: TrialRun) -> PrunedError | None:
    try:
        run.trainer.raise_if_pruned(run.task.stop_above)
    except PrunedError as ending:
        return ending
    return None


def _ended(run: TrialRun, ending: Exception | None) -> TrialOutcome | Exception:
    """Record the end of a trial; returns what came between where something did."""
    try:
        if ending is None or isinstance(ending, DivergedError | PrunedError):
            return run.end(ending)
        return ending
    except Exception as error:
        return error
    finally:
        run.__exit__()
