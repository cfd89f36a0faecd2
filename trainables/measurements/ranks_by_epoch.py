"""Ranks during training: metrics of trials with `evaluation.epoch_rank_contexts`."""

from __future__ import annotations

from collections.abc import Sequence

from trainables.trial_folder import EpochMetrics, Metric

RANKS = ("press_rank", "entropy_rank", "kl_rank")


def ranks_by_epoch_metrics(epochs: Sequence[EpochMetrics]) -> dict[str, Metric]:
    """Return the `spectrum_by_epoch@1` metrics of docs/measurements.md by name."""
    ranked_epochs = [
        epoch for epoch in epochs if any(getattr(epoch, name) is not None for name in RANKS)
    ]
    metrics: dict[str, Metric] = {"ranked_epochs": len(ranked_epochs)}
    for name in RANKS:
        values = {e.epoch: rank for e in epochs if (rank := getattr(e, name)) is not None}
        if not values:
            continue
        peak = max(values, key=lambda number: values[number])
        kept_epoch = min(epochs, key=lambda epoch: epoch.valid_loss).epoch
        metrics |= {
            f"{name}_peak": values[peak],
            f"{name}_peak_epoch": peak,
            f"{name}_last": values[max(values)],
        }
        if kept_epoch in values:
            metrics[f"{name}_kept"] = values[kept_epoch]
    return metrics
