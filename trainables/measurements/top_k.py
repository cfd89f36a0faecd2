"""Most likely next words at chosen contexts (AAAI 2021, Fig. 3 and SM Table 2)."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trainables.config import Context, LanguageTrialConfig, even_contexts, published_contexts
from trainables.corpora import Corpus
from trainables.language_model import LanguageModel
from trainables.measurements.log_probabilities import context_vectors, log_probability_matrix
from trainables.training import DivergedError
from trainables.trial_folder import Metric

WORDS, CONTEXT_WORDS = 5, 8


def default_contexts(corpus: Corpus, config: LanguageTrialConfig) -> tuple[Context, ...]:
    """Return the published contexts for Penn Treebank, else 18 spaced evenly in the test text."""
    if corpus.name == "ptb":
        return published_contexts()
    return even_contexts(len(corpus.test[: config.evaluation.test_tokens]))


def top_k_metrics(
    model: LanguageModel,
    corpus: Corpus,
    config: LanguageTrialConfig,
    contexts: Sequence[Context],
    *,
    prefix: str = "top_k",
) -> dict[str, Metric]:
    """Return one metric per context, "PREFIX GROUP NUMBER". Its value is JSON text.

    - "context": the last eight words.
    - "next": the true next word.
    - "next_in_text": the next word in the contexts file, if given.
    - "probability", "rank": of "next"; rank 1 is the most likely.
    - "top": the five most likely words with probabilities, ties by word id.

    Probabilities have six significant digits. The test text is read from its start.
    """
    indices = [context.last_token_index for context in contexts]
    tokens, window = corpus.test[: max(indices) + 1], config.evaluation.window
    contexts_NC = context_vectors(model, tokens, window=window)[indices]
    log_p_NV = log_probability_matrix(model, contexts_NC)
    if np.isnan(log_p_NV).any():
        raise DivergedError("a probability at one of the contexts is NaN")
    return {
        f"{prefix} {context.group} {context.number}": _describe(row_V, corpus, context)
        for row_V, context in zip(log_p_NV, contexts, strict=True)
    }


def _describe(log_p_V: NDArray[np.float32], corpus: Corpus, context: Context) -> str:
    next_index, vocabulary = context.last_token_index + 1, corpus.vocabulary
    order, true_id = np.argsort(-log_p_V, kind="stable"), int(corpus.test[next_index])
    words_before = corpus.test[max(0, next_index - CONTEXT_WORDS) : next_index]
    description = {
        "context": " ".join(vocabulary[word] for word in words_before.tolist()),
        "next": vocabulary[true_id],
        **({} if context.next_token is None else {"next_in_text": context.next_token}),
        "probability": _probability(log_p_V[true_id]),
        "rank": 1 + int(np.flatnonzero(order == true_id)[0]),
        "top": [[vocabulary[word], _probability(log_p_V[word])] for word in order[:WORDS].tolist()],
    }
    return json.dumps(description, ensure_ascii=False)


def _probability(log_p: np.float32) -> float:
    return float(f"{math.exp(log_p):.6g}")
