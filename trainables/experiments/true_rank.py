"""The true log-P matrix of a generated language, measured like a trained model's.

Shapes: N rows (test contexts), V columns (types), D distinct contexts among the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from trainables.config import PERPLEXITY, SPECTRUM, TrueRankConfig, markov_rank
from trainables.corpora import load, markov_language
from trainables.measurements import (
    FLOAT32_EPS,
    FLOAT64_EPS,
    log_p_spectrum,
    press_rank,
    rank_modulo_prime,
    rank_report,
)
from trainables.runtime import Runtime
from trainables.training import parallel_streams
from trainables.trial_folder import Measured

ROWS_PER_CHUNK = 1024
EPS = {"float64": FLOAT64_EPS, "float32": FLOAT32_EPS, "noise": FLOAT32_EPS}
"""Machine epsilon in the Press tolerance, by variant of the experiment."""


def measure(config: TrueRankConfig, runtime: Runtime) -> dict[str, Measured]:
    """Return perplexity and spectrum of the true log-P matrix, and `true_rank@1`.

    - `true_rank`: rank of the measured rows, by exact elimination.
    - `language_rank`: rank of the V x V matrix, by construction. With too few distinct contexts,
      `true_rank` is lower.
    - `press_rank`: uses the variant's eps. Other Press ranks use the eps in their names.
    - `entropy_perplexity`: exp of the entropy rate.
    - `shares_perplexity`: test perplexity of a model that knows only type frequencies.
    """
    corpus = load(config.corpus, data_dir=runtime.data_dir)
    rank = markov_rank(config.corpus.name)
    assert rank is not None, "the config takes generated languages only"
    language = markov_language(rank)
    # With full column rank, the left factors' rows alone determine the rank at a set of contexts.
    assert rank_modulo_prime(language.right_VR) == rank, "the language has its stated rank"
    state_by_name = {name: state for state, name in enumerate(language.types)}
    states_V = np.array([state_by_name[name] for name in corpus.vocabulary])
    log_p_VV = language.log_p_VV[np.ix_(states_V, states_V)]
    log_share_V = np.log(language.stationary_distribution()[states_V])
    evaluation = config.evaluation
    tokens = corpus.test[: evaluation.test_tokens]
    streams_TB = parallel_streams(tokens, evaluation.test_batch_size, "cpu").numpy()
    inputs, targets = streams_TB[:-1], streams_TB[1:]
    contexts_N = tokens[: evaluation.rank_contexts]
    # The Gram matrix would lose the precision that float64's eps needs.
    spectrum = log_p_spectrum(
        _rows(config, log_p_VV, contexts_N),
        rows=len(contexts_N),
        columns=len(corpus.vocabulary),
        method="qr",
    )
    contexts_D = np.unique(contexts_N)
    return {
        PERPLEXITY: Measured(
            {"test_perplexity": math.exp(-float(log_p_VV[inputs, targets].mean()))}
        ),
        SPECTRUM: Measured(
            metrics=rank_report(spectrum, eps=EPS[config.variant]),
            singular_values=spectrum.singular_values,
        ),
        "true_rank@1": Measured(
            {
                "language_rank": rank,
                "true_rank": rank_modulo_prime(language.left_VR[states_V[contexts_D]]),
                "different_contexts": len(contexts_D),
                "press_rank_float64": press_rank(spectrum, eps=FLOAT64_EPS),
                "press_rank_float32": press_rank(spectrum, eps=FLOAT32_EPS),
                "entropy_perplexity": math.exp(language.entropy_rate()),
                "shares_perplexity": math.exp(-float(log_share_V[targets].mean())),
            }
        ),
    }


def _rows(
    config: TrueRankConfig, log_p_VV: NDArray[np.float64], contexts_N: NDArray[np.int64]
) -> Iterator[NDArray[np.floating]]:
    generator = np.random.default_rng(config.seed)
    for start in range(0, len(contexts_N), ROWS_PER_CHUNK):
        chunk_NV = log_p_VV[contexts_N[start : start + ROWS_PER_CHUNK]]
        if config.variant == "float32":
            yield chunk_NV.astype(np.float32)
        elif config.variant == "noise":
            yield chunk_NV * (1 + FLOAT32_EPS * generator.standard_normal(chunk_NV.shape))
        else:
            yield chunk_NV
