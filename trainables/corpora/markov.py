"""A generated language whose log-probabilities form a matrix of known rank.

Each token depends only on the previous one. Row i of the matrix log P has the log-probabilities
after type i, for V = 1,000 types including `<eos>`. For rank R and F = R - 2,

    log P = A S B^T + 1 b^T - z 1^T.

- A and B (V x F) hold random signs. S is diagonal and falls like 1/k, so singular values decay like
  a trained model's, but stay above float64's resolution.
- b is a Zipf-like bias; z has the logarithms of the row sums.

The rank is R if [A S, 1, z] and [B, b, 1] have full column rank.

Every host generates the same bits, without a library's exp, summation order or random generator:

- Entries of log P are multiples of 2^-40 with magnitudes below 2^5, which float64 holds exactly. So
  the rank is exactly R; rows sum to 1 within 1e-11.
- Logarithms and exp tables use decimal arithmetic. Each product of table entries is rounded once.
- Random bytes are SHAKE-256. Tokens are drawn by integer weights, with errors within 1e-13 of the
  row's sum.
"""

from __future__ import annotations

import functools
import hashlib
import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

from trainables.config import MARKOV_TOKENS, MARKOV_TYPES
from trainables.corpora.text import END_OF_SENTENCE, SPLITS

LOGIT_BITS, LOG_P_BITS, WEIGHT_BITS = 24, 40, 44
"""Fractional bits: logits are multiples of 2^-24, log P of 2^-40, sampling weights of 2^-44."""
DIGITS = 25
END_PROBABILITY = Decimal("0.05")
"""Probability of `<eos>` if only the bias b counts: once in twenty tokens."""
ZIPF_OFFSET = Decimal("2.7")
"""Zipf-Mandelbrot law of the bias b: word j has a probability proportional to 1 / (j + 2.7)."""
STRENGTH = 2.5
"""Standard deviation of A S B^T in nats: how strongly the next token depends on the last one."""
DRAW_BYTES = 8


@dataclass(frozen=True, eq=False)
class MarkovLanguage:
    """A generated language; its arrays are read-only.

    Type 0 is `<eos>`; type j is the word with the j-th largest bias.
    """

    rank: int
    types: tuple[str, ...]
    log_p_VV: NDArray[np.float64]
    """Log-probabilities (nats) of the next type (column) after the last type (row)."""
    left_VR: NDArray[np.int64]
    right_VR: NDArray[np.int64]
    """Integer factors of log P with R = `rank` columns each: 2^40 log P = `left_VR` diag(2^16, ...,
    2^16, -1) `right_VR`^T."""
    weights_VV: NDArray[np.int64]
    """Sampling weights of the next type: exp(logit) as integers, in units of 2^-44."""

    def stationary_distribution(self) -> NDArray[np.float64]:
        """Return each type's long-run share of the tokens, shape V."""
        p_VV = np.exp(self.log_p_VV)
        equations = np.vstack([p_VV.T - np.eye(len(p_VV)), np.ones(len(p_VV))])
        return np.linalg.lstsq(equations, np.append(np.zeros(len(p_VV)), 1.0))[0]

    def entropy_rate(self) -> float:
        """Return the entropy rate in nats per token: the lowest possible cross-entropy."""
        return float(
            -self.stationary_distribution() @ (np.exp(self.log_p_VV) * self.log_p_VV).sum(1)
        )


@functools.lru_cache(maxsize=2)
def markov_language(rank: int) -> MarkovLanguage:
    """Return the language of rank `rank`, cached per process."""
    size, factors = MARKOV_TYPES, rank - 2
    scales = _scales(factors)
    a_VF = _random_signs(rank, "contexts", size * factors).reshape(size, factors) * scales
    b_VF = _random_signs(rank, "words", size * factors).reshape(size, factors)
    bias_V = _bias(size)
    # Integers below 2^53: float64 is exact in any order.
    logits_VV = (a_VF.astype(np.float64) @ b_VF.T.astype(np.float64)).astype(np.int64) + bias_V
    weights_VV = _weights(logits_VV)
    z_V = _logarithms(weights_VV.sum(1))
    shift = LOG_P_BITS - LOGIT_BITS
    log_p_VV = np.ldexp((logits_VV * 2**shift - z_V[:, None]).astype(np.float64), -LOG_P_BITS)
    ones_V = np.ones(size, dtype=np.int64)
    language = MarkovLanguage(
        rank=rank,
        types=(END_OF_SENTENCE, *(f"w{number}" for number in range(1, size))),
        log_p_VV=log_p_VV,
        left_VR=np.column_stack([a_VF, ones_V, z_V]),
        right_VR=np.column_stack([b_VF, bias_V, ones_V]),
        weights_VV=weights_VV,
    )
    for array in (language.log_p_VV, language.left_VR, language.right_VR, language.weights_VV):
        array.setflags(write=False)  # the cache gives the same arrays to every trial
    return language


def states(language: MarkovLanguage) -> Iterator[int]:
    """Yield the type numbers of an endless text, whose first token is drawn as after `<eos>`."""
    bounds = [row.tolist() for row in language.weights_VV.cumsum(1)]
    state, block = 0, 0
    while True:
        stream = hashlib.shake_256(f"markov {language.rank} draws {block}".encode()).digest(
            DRAW_BYTES * 2**14
        )
        for draw in np.frombuffer(stream, dtype="<u8").tolist():
            row = bounds[state]
            state = bisect_right(row, draw * row[-1] >> 64)
            yield state
        block += 1


@functools.lru_cache(maxsize=2)
def markov_texts(rank: int) -> dict[str, str]:
    """Return the text of each split; the texts are consecutive pieces of one chain.

    A text ends with the line in which it reaches the split's number of tokens.
    """
    language = markov_language(rank)
    chain = states(language)
    texts = {split: _text(chain, language.types, MARKOV_TOKENS[split]) for split in SPLITS}
    assert len(set(texts["train"].split())) == MARKOV_TYPES - 1, (
        "every word occurs in the train text"
    )
    return texts


def _text(chain: Iterator[int], types: tuple[str, ...], tokens: int) -> str:
    parts = list[str]()
    for state in chain:
        parts.append(f"{types[state]} " if state else "\n")
        if not state and len(parts) >= tokens:
            break
    return "".join(parts).replace(" \n", "\n")


def _scales(factors: int) -> NDArray[np.int64]:
    first = STRENGTH * 2**LOGIT_BITS / math.sqrt(math.fsum(1 / k**2 for k in range(1, factors + 1)))
    return np.array([round(first / k) for k in range(1, factors + 1)], dtype=np.int64)


def _random_signs(rank: int, purpose: str, count: int) -> NDArray[np.int64]:
    stream = hashlib.shake_256(f"markov {rank} {purpose}".encode()).digest(-(-count // 8))
    return (
        2 * np.unpackbits(np.frombuffer(stream, dtype=np.uint8), count=count).astype(np.int64) - 1
    )


def _bias(size: int) -> NDArray[np.int64]:
    with localcontext(Context(prec=DIGITS)):
        shares = [1 / (word + ZIPF_OFFSET) for word in range(1, size)]
        word_share = (1 - END_PROBABILITY) / sum(shares)
        probabilities = [END_PROBABILITY, *(share * word_share for share in shares)]
        return np.array(
            [round(probability.ln() * 2**LOGIT_BITS) for probability in probabilities],
            dtype=np.int64,
        )


def _weights(logits_VV: NDArray[np.int64]) -> NDArray[np.int64]:
    # exp is a product of table entries: one for the integer part, one per fractional byte.
    integer_VV = logits_VV >> LOGIT_BITS
    minimum, maximum = int(integer_VV.min()), int(integer_VV.max())
    with localcontext(Context(prec=DIGITS)):
        table = np.array(
            [float(Decimal(n).exp() * 2**WEIGHT_BITS) for n in range(minimum, maximum + 1)]
        )
        weights_VV = table[integer_VV - minimum]
        for byte in range(LOGIT_BITS // 8):
            unit = Decimal(2) ** (8 * byte - LOGIT_BITS)
            table = np.array([float((n * unit).exp()) for n in range(256)])
            weights_VV *= table[logits_VV >> (8 * byte) & 255]
    assert weights_VV.sum(1).max() < 2**62, "the sums of weights fit an int64"
    return np.rint(weights_VV).astype(np.int64)


def _logarithms(sums_V: NDArray[np.int64]) -> NDArray[np.int64]:
    with localcontext(Context(prec=DIGITS)):
        zero = (Decimal(2) ** WEIGHT_BITS).ln()
        logarithms = (Decimal(int(total)).ln() - zero for total in sums_V)
        return np.array(
            [round(logarithm * 2**LOG_P_BITS) for logarithm in logarithms], dtype=np.int64
        )
