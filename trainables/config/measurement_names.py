"""Names of measurements and metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mode = Literal["min", "max"]
LOWER_IS_BETTER = ("perplexity", "cross_entropy", "error_percent")
"""Endings of the names of this project's metrics that have a direction."""


@dataclass(frozen=True)
class Goal:
    """The metric that a study improves."""

    metric: str
    mode: Mode = "min"
    unit: str = ""

    def mode_of(self, metric: str) -> Mode | None:
        """Return the direction of any metric; None if neither is better."""
        if metric == self.metric:
            return self.mode
        return "min" if metric.endswith(LOWER_IS_BETTER) else None

    def sign(self, metric: str) -> int:
        """Return -1 if higher values of the metric are better, else 1."""
        return -1 if self.mode_of(metric) == "max" else 1

    def loss(self, value: float) -> float:
        """Return the value, or its negative if higher is better; its own inverse."""
        return value if self.mode == "min" else -value


LANGUAGE_GOAL = Goal("test_perplexity")
"""Goal of studies of language models."""
PERPLEXITY = "perplexity@1"
SPECTRUM = "spectrum@1"
TOP_K = "top_k@1"
WORD_SIMILARITY = "word_similarity@1"
KL_RANK = "kl_rank@1"
GRADIENT_BOTTLENECK = "gradient_bottleneck@1"
BENT_SOFTMAX = "bent_softmax@1"
TURNED_SOFTMAX = "turned_softmax@1"
CENTRED_SPECTRUM = "centred_spectrum@1"
SPECTRUM_BY_EPOCH = "spectrum_by_epoch@1"
LAYER_JACOBIAN = "layer_jacobian@2"
LAYER_TASK = "layer_task@2"

USER = "user@1"
"""Final metrics of a user's own trial."""
PRESS_NOISE = "press_noise@2"
WORD_PAIRS = "word_pairs@1"

NAMES = (
    *(PERPLEXITY, SPECTRUM, TOP_K, WORD_SIMILARITY, KL_RANK, GRADIENT_BOTTLENECK),
    *(SPECTRUM_BY_EPOCH, BENT_SOFTMAX, TURNED_SOFTMAX, CENTRED_SPECTRUM),
    *(LAYER_JACOBIAN, LAYER_TASK, PRESS_NOISE, WORD_PAIRS, USER),  # without a language model
)
"""Measurements that a study may request. A user's own contexts and benchmarks add others, such as
"top_k-1a2b3c4d@1"."""
WITH_SPECTRUM = ("spectrum", "layer_jacobian")
"""Names, without versions, of measurements that store singular values."""
TAG_DIGITS = 8

_COST = "wall_seconds peak_memory_mib"
_RANKS = (
    "press_rank effective_rank_1e-3 effective_rank_1e-4 effective_rank_1e-5 entropy_rank "
    "stable_rank press_tolerance press_eps sigma_max rank_rows rank_columns rank_method"
)
_LANGUAGE = f"""{_COST} {_RANKS} train_perplexity valid_perplexity test_perplexity
    generalisation_gap excess_cross_entropy kept_epoch epochs parameters seconds seconds_per_epoch
    tokens_per_second kl_rank_1e-1 kl_rank_1e-2 kl_rank_1e-3 kl_rank_rows kl_rank_columns
    kl_at_rank_* gradient_lost_share gradient_angle_degrees gradient_norm_lost
    gradient_norm_lost_null gradient_contexts
    centred_press_rank centred_effective_rank_1e-3 centred_effective_rank_1e-4
    centred_effective_rank_1e-5 centred_entropy_rank centred_stable_rank ranked_epochs
    press_rank_peak press_rank_peak_epoch press_rank_kept press_rank_last entropy_rank_peak
    entropy_rank_peak_epoch entropy_rank_kept entropy_rank_last kl_rank_peak kl_rank_peak_epoch
    kl_rank_kept kl_rank_last top_k* similarity* bent* turned*"""
METRICS = {
    "language_model": _LANGUAGE,
    "transformer": _LANGUAGE,
    "true_rank": f"""{_COST} {_RANKS} test_perplexity language_rank true_rank different_contexts
    press_rank_float32 press_rank_float64 entropy_perplexity shares_perplexity""",
    "dirichlet": f"""{_COST} target_entropy excess_cross_entropy modes_matched iterations passes
    met_rule""",
    "layer_jacobian": f"""{_COST} zero_share singular_share vanishing_* mean_vanishing_1e-3
    sigma_max sigma_middle sigma_min entropy_rank stable_rank effective_rank_1e-3 log10_condition
    log10_condition_nonzero log10_condition_excess first_half_r2 input_spread""",
    "layer_task": f"""{_COST} test_error_percent validation_error_percent train_error_percent
    chosen_learning_rate parameters""",
    "press_noise": f"{_COST} noisy_* round_trip*",
    "word_pairs": f"{_COST} word_pairs*",
}
"""Metric names by kind of trial; `*` matches any text."""
