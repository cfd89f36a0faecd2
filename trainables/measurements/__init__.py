"""Measurements by name and version: perplexity, spectra and ranks, likeliest words, word
similarity."""

from typing import TYPE_CHECKING

from trainables import on_first_use
from trainables.measurements.memory import PeakMemory, status_mib

if TYPE_CHECKING:
    from trainables.measurements.decomposition import eigenvalues_in_place, singular_values
    from trainables.measurements.head_bounds import kl_bounds, log_p_rank_bound
    from trainables.measurements.kl_rank import kl_rank_metrics, kl_ranks
    from trainables.measurements.log_probabilities import context_vectors, log_probability_rows
    from trainables.measurements.ranked_file import RankedFile, rank_file
    from trainables.measurements.ranks import (
        EFFECTIVE_RANK_EPSILONS,
        FLOAT32_EPS,
        RANKS,
        effective_rank,
        entropy_rank,
        press_rank,
        press_tolerance,
        rank_modulo_prime,
        rank_report,
        stable_rank,
    )
    from trainables.measurements.registry import epoch_ranks, log_p_rows, measure
    from trainables.measurements.spectrum import (
        FLOAT64_EPS,
        Method,
        Spectrum,
        log_p_spectrum,
        matrix_spectrum,
        spectrum_stream,
    )
    from trainables.measurements.stacked import measure_stack
    from trainables.measurements.word_similarity import pairs_in_vocabulary, spearman_rho
else:
    __getattr__ = on_first_use(
        __name__,
        "ranked_file",
        "head_bounds",
        "ranks",
        "spectrum",
        "word_similarity",
        "decomposition",
        "kl_rank",
        "log_probabilities",
        "registry",
        "stacked",
    )
