"""Several trials trained as one, each with the same files as if trained alone."""

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

Ending = tuple[TrialTask, TrialOutcome | Exception]


def run_stack(
    tasks: Iterable[TrialTask],
    *,
    runtime: Runtime,
    measurements: Sequence[str] = (PERPLEXITY, SPECTRUM),
    most: int,
    taken_up: Callable[[TrialTask], None] = lambda _: None,
) -> Generator[Ending]:
    """Train and measure trials, at most `most` at a time, and yield each when it ends.

    All trials have the same `stack_key`. `taken_up` receives each trial before it starts. When a
    trial ends, the next starts at once. An outcome is on disk before it is yielded.

    A trial's own error (at its start, at the end of an epoch or in a measurement) is yielded. An
    error of the common step or validation is raised.
    """
    queue, live_runs = iter(tasks), list[TrialRun]()
    with ExitStack() as folders:
        while True:
            while len(live_runs) < most and (task := next(queue, None)) is not None:
                taken_up(task)
                run = TrialRun(task, runtime, measurements)
                try:
                    folders.enter_context(run)
                    outcome = run.earlier or _earlier_outcome(run)
                except Exception as error:  # this trial's own error, as for one trial in a pack
                    yield task, error
                    continue
                if outcome is None:
                    live_runs.append(run)
                else:
                    yield task, outcome
            if not live_runs:
                return
            endings = _train(live_runs)
            for run, ending in endings.items():
                live_runs.remove(run)
                yield run.task, _record_outcome(run, ending)


def _earlier_outcome(run: TrialRun) -> TrialOutcome | None:
    if run.trainer.finished:
        return run.end()
    try:
        run.trainer.raise_if_pruned(run.task.stop_above)
    except PrunedError as error:
        return run.end(error)
    return None


def _train(live_runs: Sequence[TrialRun]) -> dict[TrialRun, Exception | None]:
    stack, endings = Stack([run.trainer for run in live_runs]), dict[TrialRun, Exception | None]()
    while not endings:
        start_time = time.monotonic()
        stack.step()
        ending_trainers = [trainer for trainer in stack.trainers if trainer.ends_epoch]
        if ending_trainers or any(
            trainer.progress.step % STEPS_PER_LOOK == 0 for trainer in stack.trainers
        ):
            # Otherwise the first trainer to synchronise would wait for all steps, uncounted.
            wait(live_runs[0].trainer.runtime.device)
        seconds = (time.monotonic() - start_time) / len(live_runs)
        losses = _valid_losses(ending_trainers)
        for run in live_runs:
            error = _settle_step(run, seconds, losses.get(run.trainer), len(live_runs))
            if error is not None or run.trainer.finished:
                endings[run] = error
    for run in endings:
        stack.leave(run.trainer)
    # The error that ended a trial holds this frame, which would keep the old stack in memory.
    del stack
    return endings


def _valid_losses(trainers: Sequence[Trainer]) -> dict[Trainer, float]:
    if len(trainers) < 2:
        return {}
    start_time = time.monotonic()
    losses = dict(zip(trainers, valid_losses(trainers), strict=True))
    seconds = (time.monotonic() - start_time) / len(trainers)
    for trainer in trainers:
        trainer.progress.wall_seconds += seconds
    return losses


def _settle_step(
    run: TrialRun,
    step_s: float,
    valid_loss: float | None,
    trials: int,
) -> Exception | None:
    trainer = run.trainer
    try:
        trainer.settle(step_s, run.checkpoints, run.tell, valid_loss, trials)
        if not trainer.finished:
            trainer.raise_if_pruned(run.task.stop_above)
    except (DivergedError, PrunedError) as ending:
        return ending.with_traceback(None)
    except Exception as ending:
        return ending
    return None


def _record_outcome(run: TrialRun, ending: Exception | None) -> TrialOutcome | Exception:
    try:
        if ending is None or isinstance(ending, DivergedError | PrunedError):
            return run.end(ending)
        return ending
    except Exception as error:
        return error
    finally:
        run.__exit__()
