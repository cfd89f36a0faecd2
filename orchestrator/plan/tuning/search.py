"""Suggest the next cell of a search, and the losses above which its trial stops.

A cell is a combination of tuned values. A suggestion depends only on the seed and earlier trials,
so a killed search resumes exactly. Only this file imports Optuna, on first use.

A rung is an epoch after which poor trials stop. The rule is asynchronous successive halving (Li et
al. 2020), as in Optuna's SuccessiveHalvingPruner.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.store import TrialState
from search_spaces.tuning import Cell, Method, Space, as_cell, cell_count, cells, choices

if TYPE_CHECKING:
    import optuna

RANDOM_FIRST = 10
"""Number of random trials before TPE starts: Optuna's default."""
REDRAWS = 20
"""After this many draws of cells already tried, the nearest untried cell is taken."""
REDUCTION_FACTOR = 3
"""After each rung, about one trial in `REDUCTION_FACTOR` continues."""
RUNGS = 2
"""Number of rungs. The first rung is after 1/9 of the epochs."""
# Rank correlation of first and last loss in measured trials: -0.25 with 2 epochs, -0.81 with 9. The
# loss after 3 of 9 epochs gave +0.93.
EARLIEST = 3
"""Earliest rung, in epochs. The loss after fewer epochs does not predict the last loss."""


@dataclass(frozen=True, kw_only=True)
class PastTrial:
    """An earlier suggestion, with its trial's state and losses."""

    cell: Cell
    state: TrialState
    losses: Mapping[int, float]
    """Loss by epoch, such as the validation loss in nats per token; less is better."""
    final: float | None = None
    """Loss of the final metrics, if they have the search's metric."""

    @property
    def result(self) -> float | None:
        """Return the trial's loss: the final one, or else the least of all epochs."""
        return min(self.losses.values(), default=None) if self.final is None else self.final


def suggest(
    space: Space, *, method: Method, seed: int, history: Sequence[PastTrial]
) -> Cell | None:
    """Return the next cell to try; None if every cell was tried.

    `history` has the earlier trials in the order of their suggestion.
    """
    tried_cells = {past_trial.cell for past_trial in history}
    if len(tried_cells) >= cell_count(space):
        return None
    for redraw in range(REDRAWS):
        cell = _draw(space, method, _mixed_seed(seed, len(history), redraw), history)
        if cell not in tried_cells:
            return cell
    untried_cells = (choice for choice in cells(space) if choice not in tried_cells)
    return min(
        untried_cells,
        key=lambda choice: (sum(abs(a - b) for a, b in zip(cell, choice, strict=True)), choice),
    )


def _mixed_seed(*numbers: int) -> int:
    return int.from_bytes(hashlib.sha256(repr(numbers).encode()).digest()[:4])


def _draw(space: Space, method: Method, seed: int, history: Sequence[PastTrial]) -> Cell:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = (
        optuna.samplers.TPESampler(seed=seed, n_startup_trials=RANDOM_FIRST, constant_liar=True)
        if method == "tpe"
        else optuna.samplers.RandomSampler(seed=seed)
    )
    study = optuna.create_study(direction="minimize", sampler=sampler)
    for past_trial in history:
        study.add_trial(_frozen_trial(space, past_trial))
    distributions = _distributions(space)
    indices = study.ask(distributions).params
    return as_cell(space, tuple(indices[name] for name in distributions))


def _distributions(space: Space) -> dict[str, Any]:
    from optuna.distributions import CategoricalDistribution, IntDistribution

    return {
        f"{dimension.key} {number}": CategoricalDistribution(range(len(dimension.values)))
        if isinstance(dimension.values[0], str)
        else IntDistribution(0, len(dimension.values) - 1)
        for number, dimension in enumerate(space)
    }


def _frozen_trial(space: Space, past_trial: PastTrial) -> optuna.trial.FrozenTrial:
    import optuna
    from optuna.trial import TrialState as State

    states = {
        "done": State.FAIL if past_trial.result is None else State.COMPLETE,
        "pruned": State.PRUNED,
        "diverged": State.PRUNED,
        "failed": State.FAIL,
    }
    # Optuna ranks a pruned trial without values last.
    values: dict[str, Any] = (
        {} if past_trial.state == "diverged" else {"intermediate_values": dict(past_trial.losses)}
    )
    if past_trial.state == "done":
        values["value"] = past_trial.result
    chosen, distributions = choices(space, past_trial.cell), _distributions(space)
    params = {
        name: index
        for name, dimension, index in zip(distributions, space, past_trial.cell, strict=True)
        if dimension.is_active(chosen)
    }
    return optuna.create_trial(
        state=states.get(past_trial.state, State.RUNNING),
        params=params,
        distributions={name: distributions[name] for name in params},
        **values,
    )


def rung_epochs(epochs: int) -> tuple[int, ...]:
    """Return the epochs after which a trial may stop: (111, 333) of 1,000, (3,) of 5, (1,) of 2."""
    # Optuna's pruner would add 999 of 1,000, which saves almost nothing.
    first = max(min(EARLIEST, epochs - 1), epochs // REDUCTION_FACTOR**RUNGS)
    rungs = (first * REDUCTION_FACTOR**rung for rung in range(RUNGS))
    return tuple(epoch for epoch in rungs if 0 < epoch < epochs)


def thresholds(epochs: int, earlier_losses: Iterable[Mapping[int, float]]) -> dict[int, float]:
    """Return the greatest loss with which a trial continues, by rung (epoch).

    `earlier_losses` are by epoch and include stopped trials. With m losses at a rung, a trial
    continues if it is among the best max(1, (m + 1) // 3) of m + 1. Ties continue. Rungs without
    losses are missing.
    """
    trials = list(earlier_losses)
    limits = {}
    for epoch in rung_epochs(epochs):
        losses = sorted(trial[epoch] for trial in trials if epoch in trial)
        if losses:
            pass_count = max(1, (len(losses) + 1) // REDUCTION_FACTOR)
            limits[epoch] = losses[pass_count - 1]
    return limits
