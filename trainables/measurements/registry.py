"""Measurements by name and version. A new version of one is a new name: stored numbers never change their meaning."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainables.config import PERPLEXITY, SPECTRUM, TOP_K, WORD_SIMILARITY, ContextsFile, TrialConfig, require_in_text
from trainables.corpora import BenchmarkFolder, Corpus, read_published, test_words
from trainables.errors import UserError
from trainables.language_model import AwdLstm
from trainables.measurements.log_probabilities import context_vectors, log_probability_rows
from trainables.measurements.measured import Measured
from trainables.measurements.ranks import rank_report
from trainables.measurements.spectrum import log_p_spectrum
from trainables.measurements.top_k import default_contexts, top_k_metrics
from trainables.measurements.word_similarity import similarity_metrics
from trainables.runtime import Runtime
from trainables.training import MAX_LOSS, DivergedError, mean_loss
from trainables.trial_folder import Metric

Measure = Callable[[AwdLstm, Corpus, TrialConfig], Measured]


def measure_perplexity(model: AwdLstm, corpus: Corpus, config: TrialConfig) -> Measured:
    """Test perplexity by the protocol: batch 1, windows of 70, hidden state carried."""
    evaluation = config.evaluation
    tokens = corpus.test[: evaluation.test_tokens]
    loss = mean_loss(model, tokens, batch=evaluation.test_batch_size, window=evaluation.window, split="test")
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


def measure_top_k(model: AwdLstm, corpus: Corpus, config: TrialConfig) -> Measured:
    """The likeliest next words at the published contexts of Penn Treebank; of another corpus, at evenly spaced ones."""
    return Measured(metrics=top_k_metrics(model, corpus, config, default_contexts(corpus, config)))


def measurements(runtime: Runtime) -> dict[str, Measure]:
    """Every measurement by name, with those over the contexts and benchmarks that the runtime brings."""
    by_name: dict[str, Measure] = {
        PERPLEXITY: measure_perplexity,
        SPECTRUM: measure_spectrum,
        TOP_K: measure_top_k,
        WORD_SIMILARITY: partial(_published_similarity, runtime.benchmarks_dir or runtime.data_dir),
    }
    if runtime.contexts is not None:
        by_name[runtime.contexts.measurement] = partial(_top_k_of_file, runtime.contexts, runtime.data_dir)
    if runtime.benchmarks is not None:
        by_name[runtime.benchmarks.measurement] = partial(_similarity_of_folder, runtime.benchmarks)
    return by_name


def _top_k_of_file(
    file: ContextsFile, data_dir: Path | None, model: AwdLstm, corpus: Corpus, config: TrialConfig
) -> Measured:
    require_in_text(file, test_words(corpus.name, data_dir=data_dir), corpus.name)
    return Measured(metrics=top_k_metrics(model, corpus, config, file.contexts, prefix=f"top_k-{file.tag}"))


def _published_similarity(data_dir: Path | None, model: AwdLstm, corpus: Corpus, config: TrialConfig) -> Measured:
    del config
    benchmarks = read_published(data_dir)
    return Measured(metrics=similarity_metrics(_embedding(model), corpus.vocabulary, benchmarks))


def _similarity_of_folder(folder: BenchmarkFolder, model: AwdLstm, corpus: Corpus, config: TrialConfig) -> Measured:
    del config
    prefix = f"similarity-{folder.tag}"
    return Measured(metrics=similarity_metrics(_embedding(model), corpus.vocabulary, folder.benchmarks, prefix=prefix))


def _embedding(model: AwdLstm) -> NDArray[np.float32]:
    embedding_VD: NDArray[np.float32] = model.embedding_VD.detach().float().cpu().numpy()
    return embedding_VD


def measure(
    names: Sequence[str], model: AwdLstm, corpus: Corpus, config: TrialConfig, runtime: Runtime
) -> tuple[dict[str, dict[str, Metric]], NDArray[np.float64] | None]:
    """Run the named measurements; their metrics by name, and the singular values if one of them gives some.

    Raises UserError for a name that is not among `measurements(runtime)`, and where one of them needs a file that is
    missing or not the right one.
    """
    by_name = measurements(runtime)
    metrics: dict[str, dict[str, Metric]] = {}
    singular_values = None
    for name in names:
        if name not in by_name:
            raise UserError(f"unknown measurement {name!r}: choose from {', '.join(by_name)}")
        measured = by_name[name](model, corpus, config)
        metrics[name] = measured.metrics
        if measured.singular_values is not None:
            singular_values = measured.singular_values
    return metrics, singular_values
