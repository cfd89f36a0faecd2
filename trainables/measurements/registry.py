"""Measurements by name and version. A new version of one is a new name: stored numbers never change their meaning."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from trainables.config import PERPLEXITY, SPECTRUM, TOP_K, WORD_SIMILARITY, TrialConfig, require_in_text
from trainables.corpora import Benchmark, Corpus, read_published, test_words
from trainables.errors import UserError
from trainables.language_model import AwdLstm
from trainables.measurements.log_probabilities import context_vectors, log_probability_rows
from trainables.measurements.ranks import rank_report
from trainables.measurements.spectrum import log_p_spectrum
from trainables.measurements.top_k import default_contexts, top_k_metrics
from trainables.measurements.word_similarity import similarity_metrics
from trainables.runtime import Runtime
from trainables.training import MAX_LOSS, DivergedError, mean_loss
from trainables.trial_folder import Measured

Measure = Callable[[AwdLstm, Corpus, TrialConfig], Measured]


def measure(
    names: Sequence[str], model: AwdLstm, corpus: Corpus, config: TrialConfig, runtime: Runtime
) -> dict[str, Measured]:
    """Take the named measurements.

    Raises UserError for a name that is not among `measurements(runtime)`, and where one of them needs a file that is
    missing or not the right one.
    """
    by_name = measurements(runtime)
    for name in names:
        if name not in by_name:
            raise UserError(f"unknown measurement {name!r}: choose from {', '.join(by_name)}")
    return {name: by_name[name](model, corpus, config) for name in names}


def measurements(runtime: Runtime) -> dict[str, Measure]:
    """Every measurement by name, with those over the contexts and benchmarks that the runtime brings.

    The likeliest words are at the published contexts of Penn Treebank; of another corpus, at evenly spaced ones.
    """

    def top_k_of_file(model: AwdLstm, corpus: Corpus, config: TrialConfig) -> Measured:
        assert file is not None
        require_in_text(file, test_words(corpus.name, data_dir=runtime.data_dir), corpus.name)
        return Measured(top_k_metrics(model, corpus, config, file.contexts, prefix=f"top_k-{file.tag}"))

    def published_similarity(model: AwdLstm, corpus: Corpus, _: TrialConfig) -> Measured:
        return _similarity(model, corpus, read_published(runtime.benchmarks_dir or runtime.data_dir), "similarity")

    def similarity_of_folder(model: AwdLstm, corpus: Corpus, _: TrialConfig) -> Measured:
        assert folder is not None
        return _similarity(model, corpus, folder.benchmarks, f"similarity-{folder.tag}")

    file, folder = runtime.contexts, runtime.benchmarks
    by_name: dict[str, Measure] = {
        PERPLEXITY: _perplexity,
        SPECTRUM: _spectrum,
        TOP_K: _top_k,
        WORD_SIMILARITY: published_similarity,
    }
    if file is not None:
        by_name[file.measurement] = top_k_of_file
    if folder is not None:
        by_name[folder.measurement] = similarity_of_folder
    return by_name


def _perplexity(model: AwdLstm, corpus: Corpus, config: TrialConfig) -> Measured:
    """Test perplexity by the protocol: batch 1, windows of 70, hidden state carried."""
    evaluation = config.evaluation
    tokens = corpus.test[: evaluation.test_tokens]
    loss = mean_loss(model, tokens, batch=evaluation.test_batch_size, window=evaluation.window, split="test")
    if not loss <= MAX_LOSS:
        raise DivergedError(f"the test loss is {loss:.3g} nats per token")
    return Measured({"test_perplexity": math.exp(loss)})


def _spectrum(model: AwdLstm, corpus: Corpus, config: TrialConfig) -> Measured:
    """Spectrum and ranks of the float32 log-P matrix over the test contexts, through its Gram matrix in float64."""
    evaluation = config.evaluation
    tokens = corpus.test[: evaluation.test_tokens][: evaluation.rank_contexts]
    contexts_NC = context_vectors(model, tokens, window=evaluation.window)
    spectrum = log_p_spectrum(log_probability_rows(model, contexts_NC), columns=len(corpus.vocabulary))
    return Measured(rank_report(spectrum), spectrum.singular_values)


def _top_k(model: AwdLstm, corpus: Corpus, config: TrialConfig) -> Measured:
    return Measured(top_k_metrics(model, corpus, config, default_contexts(corpus, config)))


def _similarity(model: AwdLstm, corpus: Corpus, benchmarks: Iterable[Benchmark], prefix: str) -> Measured:
    embedding_VD = model.embedding_VD.detach().float().cpu().numpy()
    return Measured(similarity_metrics(embedding_VD, corpus.vocabulary, benchmarks, prefix=prefix))
