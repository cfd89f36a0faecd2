"""What plans take on a GPU of today, with stacks of trials and without: by arithmetic, since
nothing was timed there.

Basis. Of the paper's V100 the seconds of an epoch are published: 55 s for softmax on PTB, 664 steps
(`gpu_seconds`). Of an H200 nothing was measured: at 203 GFLOP a step, a trial alone (cuDNN,
float32) is reckoned to take 9 to 12 ms a step, and one of at least `FULL_STACK` trials trained as
one `STACKED_MS`, by what a step reads, writes and multiplies (`gpu_proof.roofline`). Any other
trial is taken to gain what this one gains. A stack of fewer is counted as trials alone, and so is
one of Transformers: a step of theirs has many times the rows in each product, which may fill a GPU
by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.forecast.estimates import gpu_seconds
from search_spaces.awd_lstm import V100_SECONDS_PER_EPOCH
from trainables.config import LanguageTrialConfig, TransformerTrialConfig, stack_key

if TYPE_CHECKING:
    from orchestrator.plan import Plan

FULL_STACK = 8
STEPS = 664
"""Of an epoch of PTB at paper shapes, about."""
ALONE_MS = (9.0, 12.0)
"""At the least and at the most, of one model's step on an H200."""
STACKED_MS = {"float32": 9.4, "tf32": 3.5, "bf16": 1.9}
"""Of one model's step there, by the precision of products."""
H200_BASIS = (
    "H200: estimated by arithmetic, not measured: no trial was timed on one. A step of softmax on "
    "PTB is reckoned to "
    f"take {ALONE_MS[0]:g} to {ALONE_MS[1]:g} ms alone in float32 and {STACKED_MS['float32']:g} ms "
    f"in a stack of "
    f"{FULL_STACK} or more ({STACKED_MS['tf32']:g} ms with --set training.precision=tf32, "
    f"{STACKED_MS['bf16']:g} ms "
    "with bf16), against 83 ms on the V100; all other trials are scaled by that."
)
SEARCHED, ALONE = "picked one at a time by a search", "of a kind that trains alone"
FEW = f"with fewer than {FULL_STACK} of equal shapes in their study"
TRANSFORMERS = "of Transformers, for which no gain by stacks is reckoned"
"""Why trials count as alone."""


@dataclass(frozen=True, kw_only=True)
class StackCosts:
    """Of the language models of plans, in hours of one H200: the least and the most."""

    stacked: int
    """Trials that are trained as one with others."""
    alone: dict[str, int]
    """How many count as trained alone, by the reason."""
    stacked_hours: float
    stacked_hours_without: tuple[float, float]
    """Of the same trials without stacks."""
    alone_hours: tuple[float, float]

    @property
    def hours_without(self) -> tuple[float, float]:
        """Of all, where each trains alone."""
        return _sum(self.stacked_hours_without, self.alone_hours)

    @property
    def hours_with(self) -> tuple[float, float]:
        """Of all, with stacks."""
        return _sum((self.stacked_hours, self.stacked_hours), self.alone_hours)


@dataclass(frozen=True, kw_only=True)
class _Lot:
    """Trials of one config that come into the queue together with those of the same group."""

    config: LanguageTrialConfig
    v100_seconds: float
    """Of one of them."""
    group: Hashable
    """None where they count as alone."""
    trials: int = 1
    searched: bool = False


def stack_costs(plans: Sequence[Plan]) -> StackCosts:
    """Of the different trials of plans, each plan run by itself on one GPU."""
    lots = [lot for plan in plans if plan.tuning for lot in _tuned_lots(plan)]
    lots += _lots([plan for plan in plans if not plan.tuning])
    sizes = Counter[Hashable]()
    for lot in lots:
        sizes[lot.group] += lot.trials
    stacked = [lot for lot in lots if lot.group is not None and sizes[lot.group] >= FULL_STACK]
    alone = [lot for lot in lots if lot.group is None or sizes[lot.group] < FULL_STACK]
    reasons = Counter[str]()
    for lot in alone:
        reasons[_why_alone(lot)] += lot.trials
    return StackCosts(
        stacked=sum(lot.trials for lot in stacked),
        alone=dict(reasons),
        stacked_hours=sum(
            _hours(lot, STACKED_MS[lot.config.training.precision]) for lot in stacked
        ),
        stacked_hours_without=_range(stacked),
        alone_hours=_range(alone),
    )


def _why_alone(lot: _Lot) -> str:
    if lot.searched:
        return SEARCHED
    if lot.group is not None:
        return FEW
    return ALONE if stack_key(lot.config) is None else TRANSFORMERS


def _lots(plans: Sequence[Plan]) -> list[_Lot]:
    """Of plans that tune nothing: every trial, in the first plan that has it."""
    first = {trial.trial_id: (plan, trial) for plan in reversed(plans) for trial in plan.trials}
    return [
        _lot(plan, trial.config, "")
        for plan, trial in first.values()
        if isinstance(trial.config, LanguageTrialConfig)
    ]


def _tuned_lots(plan: Plan) -> Iterator[_Lot]:
    """The stages of each side, with that side's own config, as `outlook` counts them."""
    tuning = plan.tuning
    assert tuning is not None
    for base in tuning.bases.values():
        config = tuning.resolve(base)
        yield _lot(plan, config, "stage 1", len(tuning.stage1_cells))
        # A grid is planned whole, with stage 1.
        if tuning.search == "grid":
            yield _lot(plan, config, "stage 1", tuning.budget)
        else:
            yield _lot(plan, config, "", tuning.budget, searched=True)
        yield _lot(plan, config, "final", len(tuning.seeds))


def _lot(
    plan: Plan, config: LanguageTrialConfig, stage: str, trials: int = 1, *, searched: bool = False
) -> _Lot:
    key = None if searched or isinstance(config, TransformerTrialConfig) else stack_key(config)
    return _Lot(
        config=config,
        v100_seconds=gpu_seconds(config, plan.corpus),
        group=None if key is None else (plan.key, stage, key),
        trials=trials,
        searched=searched,
    )


def _range(lots: Sequence[_Lot]) -> tuple[float, float]:
    least, most = (sum(_hours(lot, step_ms) for lot in lots) for step_ms in ALONE_MS)
    return least, most


def _hours(lot: _Lot, step_ms: float) -> float:
    v100_ms = 1000 * V100_SECONDS_PER_EPOCH["ptb"]["softmax"] / STEPS
    return lot.trials * lot.v100_seconds / 3600 * step_ms / v100_ms


def _sum(hours: tuple[float, float], others: tuple[float, float]) -> tuple[float, float]:
    return hours[0] + others[0], hours[1] + others[1]
