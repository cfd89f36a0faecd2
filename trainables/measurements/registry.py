"""Measurements by name and version. A new version of one is a new name: stored numbers never change their meaning."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trainables.config import TrialConfig
from trainables.corpora import Corpus
from trainables.language_model.awd_lstm import AwdLstm
from trainables.measurements.log_probabilities import context_vectors, log_probability_rows
from trainables.measurements.perplexity import mean_loss
from trainables.measurements.ranks import rank_report
from trainables.measurements.spectrum import log_p_spectrum
from trainables.outcome import Metric
from trainables.training.loop import MAX_LOSS, DivergedError


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one measurement gives: finite metrics, and the singular values where it has some."""

    metrics: dict[str, Metric]
    singular_values: NDArray[np.float64] | None = field(default=None, repr=False)


Measure = Callable[[AwdLstm, Corpus, TrialConfig], Measured]


def measure_perplexity(model: AwdLstm, corpus: Corpus, config: TrialConfig) -> Measured:
    """Test perplexity by the protocol: batch 1, windows of 70, hidden state carried."""
    evaluation = config.evaluation
    tokens = corpus.test[: evaluation.test_tokens]
    loss = mean_loss(model, tokens, batch=evaluation.test_batch_size, window=evaluation.window, what="test")
    if not loss <= MAX_LOSS:
        raise DivergedError(f"the test loss is {loss:.3g} nats per token")
    return Measured(metrics={"test_perplexity": math.exp(loss)})


def measure_spectrum(model: AwdLstm, corpus: Corpus, config: TrialConfig) -> Measured:
    """Spectrum and ranks of the float32 log-P matrix over the test contexts, through its Gram matrix in float64."""
    evaluation = config.evaluation
    tokens = corpus.test[: evaluation.test_tokens][: evaluation.rank_contexts]
    contexts_NC = context_vectors(model, tokens, window=evaluation.window)
    spectrum = log_p_spectrum(log_probability_rows(model, contexts_NC), columns=len(corpus.vocabulary))
    return Measured(metrics=rank_report(spectrum), singular_values=spectrum.singular_values)


MEASUREMENTS: Mapping[str, Measure] = {"perplexity@1": measure_perplexity, "spectrum@1": measure_spectrum}


def measure(
    names: Sequence[str], model: AwdLstm, corpus: Corpus, config: TrialConfig
) -> tuple[dict[str, dict[str, Metric]], NDArray[np.float64] | None]:
    """Run the named measurements; their metrics by name, and the singular values if one of them gives some."""
    metrics: dict[str, dict[str, Metric]] = {}
    singular_values = None
    for name in names:
        measured = MEASUREMENTS[name](model, corpus, config)
        metrics[name] = measured.metrics
        if measured.singular_values is not None:
            singular_values = measured.singular_values
    return metrics, singular_values
