"""Several trials of the same shapes trained as one; each leaves the files that it leaves alone."""

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
"""A trial with its outcome, or with the error that prevented one."""


def run_stack(
    tasks: Iterable[TrialTask],
    *,
    runtime: Runtime,
    measurements: Sequence[str] = (PERPLEXITY, SPECTRUM),
    most: int,
    taken_up: Callable[[TrialTask], None] = lambda _: None,
) -> Generator[Ended]:
    """Train and measure trials, at most `most` at a time, and yield each when it ends.

    The next trial starts as soon as one ends. All have the same `stack_key`. An outcome is on disk
    before it is yielded, as with `run_trial`. An error of one trial (at its start, at the end of an
    epoch or in a measurement) is yielded in place of its outcome, and the others continue. An error
    of the common step or validation is raised. `taken_up` receives every trial that is about to
    start."""
    waiting, live = iter(tasks), list[TrialRun]()
    with ExitStack() as folders:
        while True:
            while len(live) < most and (task := next(waiting, None)) is not None:
                taken_up(task)
                run = TrialRun(task, runtime, measurements)
                try:
                    folders.enter_context(run)
                    outcome = run.earlier or _ended_before(run)
                except Exception as error:  # this trial's own error, as for one trial in a pack
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
    """Return the outcome of a trial whose last checkpoint already ends or prunes it."""
    if run.trainer.finished:
        return run.end()
    try:
        run.trainer.raise_if_pruned(run.task.stop_above)
    except PrunedError as error:
        return run.end(error)
    return None


def _train(live: Sequence[TrialRun]) -> dict[TrialRun, Exception | None]:
    """Step until at least one trial ends; return the ended ones, each with its error."""
    stack, ended = Stack([run.trainer for run in live]), dict[TrialRun, Exception | None]()
    while not ended:
        started = time.monotonic()
        stack.step()
        ending = [trainer for trainer in stack.trainers if trainer.ends_epoch]
        if ending or any(trainer.progress.step % STEPS_PER_LOOK == 0 for trainer in stack.trainers):
            # Otherwise the first one to synchronise would wait for everyone's steps, uncounted.
            wait(live[0].trainer.runtime.device)
        seconds = (time.monotonic() - started) / len(live)
        losses = _valid_losses(ending)
        for run in live:
            trouble = _trouble(run, seconds, losses.get(run.trainer), len(live))
            if trouble is not None or run.trainer.finished:
                ended[run] = trouble
    for run in ended:
        stack.leave(run.trainer)
    # The error that ended a trial holds this frame; without this, the stack would outlive its
    # successors.
    del stack
    return ended


def _valid_losses(trainers: Sequence[Trainer]) -> dict[Trainer, float]:
    """Validate several trainers at once, charging each an equal share of the time.

    A single trainer validates itself."""
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
    try:
        if ending is None or isinstance(ending, DivergedError | PrunedError):
            return run.end(ending)
        return ending
    except Exception as error:
        return error
    finally:
        run.__exit__()
