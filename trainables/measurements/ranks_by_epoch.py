"""What became of a model's ranks in training: from those that were taken at the end of its epochs.

A trial keeps the weights of one epoch. Ranks of the others cannot be taken later: they are taken in
training, where `evaluation.epoch_rank_contexts` says so (see
`trainables.measurements.registry.epoch_ranks`), and recorded by epoch."""

from __future__ import annotations

from collections.abc import Sequence

from trainables.trial_folder import EpochMetrics, Metric

RANKS = ("press_rank", "entropy_rank", "kl_rank")
"""Of an epoch."""


def ranks_by_epoch_metrics(epochs: Sequence[EpochMetrics]) -> dict[str, Metric]:
    """Of every rank that was recorded: "press_rank_peak", the largest of all epochs;
    "press_rank_peak_epoch", the first one that had it; "press_rank_kept", at the least validation
    loss, whose weights are kept; "press_rank_last", at the end. "ranked_epochs" says how many
    epochs have ranks; 0 where none were taken."""
    ranked = [epoch for epoch in epochs if any(getattr(epoch, name) is not None for name in RANKS)]
    metrics: dict[str, Metric] = {"ranked_epochs": len(ranked)}
    for name in RANKS:
        values = {e.epoch: rank for e in epochs if (rank := getattr(e, name)) is not None}
        if not values:
            continue
        peak = max(values, key=lambda number: values[number])
        kept = min(epochs, key=lambda epoch: epoch.valid_loss).epoch
        metrics |= {
            f"{name}_peak": values[peak],
            f"{name}_peak_epoch": peak,
            f"{name}_last": values[max(values)],
        }
        if kept in values:
            metrics[f"{name}_kept"] = values[kept]
    return metrics
