from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.other_process import sha256_elsewhere
from trainables.config import MARKOV_TOKENS, CorpusConfig
from trainables.corpora import SPLITS, MarkovLanguage, identity, load, markov_language, tokenise
from trainables.corpora.markov import markov_texts, states
from trainables.measurements.ranks import press_rank, rank_modulo_prime
from trainables.measurements.spectrum import FLOAT64_EPS, matrix_spectrum

DEFAULT_SHA256 = "b6d3b49c53582b52a436bb81f68e4f1211780f14b018ba1b836e46673d7ec11d"
SEVEN_SHA256 = "375f0f34d7d7c9329c5e1ffffa51ccd740d41bd548b31c81dbff8efc325c2b4c"


@pytest.fixture(scope="module")
def language() -> MarkovLanguage:
    return markov_language(100)


@pytest.fixture(scope="module")
def chain(language: MarkovLanguage) -> NDArray[np.int64]:
    state_by_name = {name: state for state, name in enumerate(language.types)}
    return np.array([state_by_name[token] for token in tokenise(markov_texts(100)["train"])])


@pytest.mark.parametrize("rank", [5, 100, 500])
def test_matrix_has_stated_rank(rank: int) -> None:
    language = markov_language(rank)
    spectrum = matrix_spectrum(language.log_p_VV, method="qr")
    assert press_rank(spectrum, eps=FLOAT64_EPS) == rank
    assert np.linalg.matrix_rank(language.log_p_VV) == rank
    assert rank_modulo_prime(language.left_VR) == rank_modulo_prime(language.right_VR) == rank
    assert language.left_VR.shape == language.right_VR.shape == (1000, rank)


def test_rows_match_fifty_digits(language: MarkovLanguage) -> None:
    for row in (0, 1, 500):
        with localcontext() as context:
            context.prec = 50
            exact = [Decimal(value) for value in language.log_p_VV[row].tolist()]
            assert abs(float(sum((value.exp() for value in exact), Decimal(-1)))) < 1e-11
            total = Decimal(int(language.weights_VV[row].sum()))
            drawn = [Decimal(weight) / total for weight in language.weights_VV[row].tolist()]
            off = max(
                float(abs(value.exp() - share)) for value, share in zip(exact, drawn, strict=True)
            )
        assert off < 1e-12


def test_step_keeps_stationary_distribution(language: MarkovLanguage) -> None:
    share, p_VV = np.full(1000, 1e-3), np.exp(language.log_p_VV)
    for _ in range(200):
        share = share @ p_VV
    np.testing.assert_allclose(language.stationary_distribution(), share, rtol=1e-9)
    by_hand = -math.fsum(float(share[i] * p_VV[i] @ language.log_p_VV[i]) for i in range(1000))
    assert language.entropy_rate() == pytest.approx(by_hand, rel=1e-9)


def test_transitions_follow_stated_rows(language: MarkovLanguage, chain: NDArray[np.int64]) -> None:
    """A chi-square test compares the text with the stated transition matrix.

    Cells with an expected count below 5 are pooled within their row. The test must reject a matrix
    that is only nearly right.
    """
    counts_VV = np.zeros((1000, 1000))
    np.add.at(counts_VV, (chain[:-1], chain[1:]), 1)
    p_VV = np.exp(language.log_p_VV)
    tempered_VV = p_VV**0.97
    assert abs(_chi_square_deviations(counts_VV, p_VV)) < 4
    assert _chi_square_deviations(counts_VV, tempered_VV / tempered_VV.sum(1, keepdims=True)) > 4


def _chi_square_deviations(counts_VV: NDArray[np.float64], p_VV: NDArray[np.float64]) -> float:
    expected_VV = p_VV * counts_VV.sum(1, keepdims=True)
    rare_VV = expected_VV < 5
    observed, expected = (
        np.column_stack([np.where(rare_VV, 0, cells_VV), (cells_VV * rare_VV).sum(1)])
        for cells_VV in (counts_VV, expected_VV)
    )
    used = expected >= 5
    used &= used.sum(1, keepdims=True) > 1
    statistic = ((observed - expected)[used] ** 2 / expected[used]).sum()
    freedom = used.sum() - used.any(1).sum()
    return float((statistic - freedom) / math.sqrt(2 * freedom))


def test_corpus_tokens_are_the_chain(language: MarkovLanguage) -> None:
    corpus = load(CorpusConfig(name="markov", sha256=DEFAULT_SHA256), data_dir=None)
    ids = np.concatenate([getattr(corpus, split) for split in SPLITS])
    expected = [language.types[state] for state in itertools.islice(states(language), len(ids))]
    assert [corpus.vocabulary[index] for index in ids] == expected
    for split, tokens in MARKOV_TOKENS.items():
        tokens_N = getattr(corpus, split)
        assert tokens <= len(tokens_N) < tokens + 500
        assert corpus.vocabulary[tokens_N[-1]] == "<eos>"
    assert len(set(corpus.train.tolist())) == len(language.types) == 1000


def test_cpu_instructions_change_no_text() -> None:
    """The other process rounds differently: numpy without AVX, and the BLAS of an old processor."""
    elsewhere = sha256_elsewhere(
        "markov-7",
        NPY_DISABLE_CPU_FEATURES="AVX512F AVX512CD AVX2 FMA3",
        OPENBLAS_CORETYPE="Prescott",
    )
    assert elsewhere == identity("markov-7", data_dir=None).sha256 == SEVEN_SHA256
