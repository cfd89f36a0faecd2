"""A search: which cell of a space to try next, and which validation loss its trial needs to be
trained further.

A suggestion is a pure function of the seed and of the cells tried so far: every call builds a
sampler anew from the whole history, so nothing of it has to be stored, and a search that was killed
goes on as if it had not been. This file alone imports Optuna, and only when it is asked.

The rule for stopping is that of Optuna's SuccessiveHalvingPruner (asynchronous successive halving,
Li et al. 2020), turned into one threshold for each rung: a trial can then be judged where it runs,
without asking anybody."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from orchestrator.store import TrialState
from search_spaces.tuning import Cell, Space, cell_count, cells

if TYPE_CHECKING:
    import optuna

Method = Literal["tpe", "random"]

RANDOM_FIRST = 10
"""So many trials are drawn at random before TPE begins to model: Optuna's default."""
REDRAWS = 20
"""So often a cell that was tried before is drawn again, before the nearest one that was not is
taken."""
REDUCTION_FACTOR = 3
"""About the best third of the trials passes a rung."""
RUNGS = 2
"""The first one is after 1/9 of the epochs."""
EARLIEST = 3
"""And not before the end of the third epoch, where there are more: the first two tell nothing, or
the contrary. On real tables of 2 and 9 epochs, the rank correlation of the loss after the first
epoch with the last one was -0.25 and -0.81, after the third of nine +0.93."""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A cell that was suggested before, and what its trial came to."""

    cell: Cell
    state: TrialState
    losses: Mapping[int, float]
    """Validation loss in nats per token after each epoch."""


def suggest(space: Space, *, method: Method, seed: int, history: Sequence[Tried]) -> Cell | None:
    """A cell that is not in the history (in the order of asking); None once every cell is."""
    tried = {earlier.cell for earlier in history}
    if len(tried) >= cell_count(space):
        return None
    for redraw in range(REDRAWS):
        cell = _draw(space, method, _mixed(seed, len(history), redraw), history)
        if cell not in tried:
            return cell
    untried = (choice for choice in cells(space) if choice not in tried)
    return min(
        untried,
        key=lambda choice: (sum(abs(a - b) for a, b in zip(cell, choice, strict=True)), choice),
    )


def _mixed(*numbers: int) -> int:
    """One seed of 32 bits from several numbers."""
    return int.from_bytes(hashlib.sha256(repr(numbers).encode()).digest()[:4])


def _draw(space: Space, method: Method, seed: int, history: Sequence[Tried]) -> Cell:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = (
        optuna.samplers.TPESampler(seed=seed, n_startup_trials=RANDOM_FIRST, constant_liar=True)
        if method == "tpe"
        else optuna.samplers.RandomSampler(seed=seed)
    )
    study = optuna.create_study(direction="minimize", sampler=sampler)
    for tried in history:
        study.add_trial(_frozen(space, tried))
    trial = study.ask()
    return tuple(
        trial.suggest_int(dimension.key, 0, len(dimension.values) - 1) for dimension in space
    )


def _frozen(space: Space, tried: Tried) -> optuna.trial.FrozenTrial:
    """A trial as Optuna knows them: diverged ones are pruned without any value, which makes them
    the worst of all."""
    import optuna
    from optuna.trial import TrialState as State

    ended = {
        "done": State.COMPLETE,
        "pruned": State.PRUNED,
        "diverged": State.PRUNED,
        "failed": State.FAIL,
    }
    values: dict[str, Any] = (
        {} if tried.state == "diverged" else {"intermediate_values": dict(tried.losses)}
    )
    if tried.state == "done":
        values["value"] = min(tried.losses.values())
    return optuna.create_trial(
        state=ended.get(tried.state, State.RUNNING),
        params={dimension.key: index for dimension, index in zip(space, tried.cell, strict=True)},
        distributions={
            dimension.key: optuna.distributions.IntDistribution(0, len(dimension.values) - 1)
            for dimension in space
        },
        **values,
    )


def rung_epochs(epochs: int) -> tuple[int, ...]:
    """After which epochs of a whole trial of `epochs` it is judged: (111, 333) of 1,000, (3,) of 5,
    (1,) of 2.

    Optuna's pruner would go on to 999, where hardly anything is left to save.
    """
    first = max(min(EARLIEST, epochs - 1), epochs // REDUCTION_FACTOR**RUNGS)
    rungs = (first * REDUCTION_FACTOR**rung for rung in range(RUNGS))
    return tuple(epoch for epoch in rungs if 0 < epoch < epochs)


def thresholds(epochs: int, earlier: Iterable[Mapping[int, float]]) -> dict[int, float]:
    """For each rung that an earlier trial has reached: the greatest validation loss that passes it,
    in nats a token.

    `earlier` are the validation losses of earlier trials by epoch, also of those that the rung
    stopped. With m of them at a rung, the new trial passes if it is among the best max(1, (m + 1)
    // 3) of the m + 1, ties on its side."""
    trials = list(earlier)
    limits = {}
    for epoch in rung_epochs(epochs):
        losses = sorted(trial[epoch] for trial in trials if epoch in trial)
        if losses:
            passing = max(1, (len(losses) + 1) // REDUCTION_FACTOR)
            limits[epoch] = losses[passing - 1]
    return limits
