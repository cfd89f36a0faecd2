"""Measurements by name and version.

A changed measurement gets a new version, so old numbers stay valid.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import kl_div

from trainables.config import (
    BENT_SOFTMAX,
    CENTRED_SPECTRUM,
    GRADIENT_BOTTLENECK,
    KL_RANK,
    PERPLEXITY,
    SOFTCAPS,
    SPECTRUM,
    SPECTRUM_BY_EPOCH,
    TOP_K,
    TURNED_SOFTMAX,
    TURNS,
    WORD_SIMILARITY,
    ContextsFile,
    LanguageTrialConfig,
    OutputLayerConfig,
    SoftmaxConfig,
    TransformerTrialConfig,
    even_indices,
    require_in_text,
)
from trainables.corpora import Benchmark, Corpus, read_published, test_words
from trainables.device import products_in
from trainables.errors import UserError
from trainables.language_model import LanguageModel
from trainables.measurements.chunks import Chunks, compute_in_memory, spectrum_of_chunks
from trainables.measurements.gradient_bottleneck import CONTEXTS, gradient_bottleneck_metrics
from trainables.measurements.kl_rank import kl_rank_metrics, kl_ranks_after
from trainables.measurements.log_probabilities import (
    context_vectors,
    log_probability_chunks,
    log_probability_matrix,
)
from trainables.measurements.ranks import RANKS, entropy_rank, press_rank, rank_report
from trainables.measurements.ranks_by_epoch import ranks_by_epoch_metrics
from trainables.measurements.spectrum import Spectrum
from trainables.measurements.top_k import default_contexts, top_k_metrics
from trainables.measurements.word_similarity import similarity_metrics
from trainables.output_layers import pointwise_function
from trainables.pulse import PULSE
from trainables.runtime import Runtime
from trainables.training import MAX_LOSS, DivergedError, mean_loss
from trainables.trial_folder import EpochMetrics, Measured, Metric

EPOCH_BOUND = "1e-2"
"""Bound on KL, in nats, that defines the KL rank of an epoch or of a bent softmax."""


@dataclass(frozen=True)
class TrainedModel:
    """A trained model with all inputs of its measurements."""

    model: LanguageModel
    corpus: Corpus
    config: LanguageTrialConfig
    runtime: Runtime
    epochs: Sequence[EpochMetrics]

    def contexts(self) -> Tensor:
        """Return the context vectors of `spectrum@1`, N x C."""
        tokens = rank_tokens(self.corpus, self.config)
        return context_vectors(self.model, tokens, window=self.config.evaluation.window)


def measure(
    names: Sequence[str],
    model: LanguageModel,
    corpus: Corpus,
    config: LanguageTrialConfig,
    runtime: Runtime,
    *,
    epochs: Sequence[EpochMetrics] = (),
) -> dict[str, Measured]:
    """Return the named measurements of a model.

    Raises UserError for an unknown name, and for a missing or wrong file.
    """
    trained = TrainedModel(model, corpus, config, runtime, epochs)
    by_name = dict(BY_NAME)
    if file := runtime.contexts:
        by_name[file.measurement] = partial(_top_k_of_file, file=file)
    if folder := runtime.benchmarks:
        prefix = f"similarity-{folder.tag}"
        by_name[folder.measurement] = partial(
            _similarity, benchmarks=folder.benchmarks, prefix=prefix
        )
    for name in names:
        if name not in by_name:
            raise UserError(f"unknown measurement {name!r}. Choose from: {', '.join(by_name)}")
    results = {}
    for name in names:
        PULSE.enter(f"in the measurement {name}")
        with products_in("float32", runtime.device):
            results[name] = by_name[name](trained)
    return results


def _perplexity(trained: TrainedModel) -> Measured:
    evaluation = trained.config.evaluation
    tokens = trained.corpus.test[: evaluation.test_tokens]
    batch, window = evaluation.test_batch_size, evaluation.window
    loss = mean_loss(trained.model, tokens, batch=batch, window=window)
    if not loss <= MAX_LOSS:
        raise DivergedError(f"the test loss is {loss:.3g} nats per token")
    return Measured({"test_perplexity": math.exp(loss)})


def _spectrum(trained: TrainedModel) -> Measured:
    spectrum = spectrum_at(trained.model, trained.contexts())
    return Measured(rank_report(spectrum), spectrum.singular_values)


def _centred_spectrum(trained: TrainedModel) -> Measured:
    report = rank_report(spectrum_at(trained.model, trained.contexts(), centre=True))
    return Measured({f"centred_{name}": report[name] for name in RANKS})


def rank_tokens(corpus: Corpus, config: LanguageTrialConfig) -> NDArray[np.int64]:
    """Return the test tokens after which `spectrum@1` computes log P."""
    return corpus.test[: config.evaluation.test_tokens][: config.evaluation.rank_contexts]


def log_p_matrix(
    model: LanguageModel, corpus: Corpus, config: LanguageTrialConfig, contexts: int | None = None
) -> NDArray[np.float32]:
    """Return log P at the contexts of `spectrum@1`, or at the first `contexts` test tokens."""
    tokens = rank_tokens(corpus, config) if contexts is None else corpus.test[:contexts]
    contexts_NC = context_vectors(model, tokens, window=config.evaluation.window)
    return log_probability_matrix(model, contexts_NC)


def epoch_ranks(
    model: LanguageModel, corpus: Corpus, config: LanguageTrialConfig
) -> dict[str, Metric]:
    """Return ranks at the first `evaluation.epoch_rank_contexts` validation tokens, if set.

    Ranks are those of `spectrum@1` and, for a Transformer, of `kl_rank@1`.
    """
    evaluation = config.evaluation
    if evaluation.epoch_rank_contexts is None:
        return {}
    tokens = corpus.valid[: evaluation.valid_tokens][: evaluation.epoch_rank_contexts]
    contexts_NC = context_vectors(model, tokens, window=evaluation.window)
    spectrum = spectrum_at(model, contexts_NC)
    ranks: dict[str, Metric] = {
        "press_rank": press_rank(spectrum),
        "entropy_rank": entropy_rank(spectrum.singular_values),
    }
    if isinstance(config, TransformerTrialConfig):
        kl_ranks = kl_ranks_after(model, contexts_NC, bounds=(EPOCH_BOUND,)).ranks
        ranks["kl_rank"] = kl_ranks[EPOCH_BOUND]
    return ranks


def spectrum_at(model: LanguageModel, contexts_NC: Tensor, *, centre: bool = False) -> Spectrum:
    """Return the spectrum of log P at `contexts_NC`; `centre` subtracts row means."""
    rows, columns = len(contexts_NC), len(model.embedding_VD)

    def spectrum(chunks: Chunks) -> Spectrum:
        return spectrum_of_chunks(chunks(), rows=rows, columns=columns, centre=centre)

    return compute_in_memory(spectrum, model, contexts_NC, squares=3)


def _kl_rank(trained: TrainedModel) -> Measured:
    return Measured(kl_rank_metrics(kl_ranks_after(trained.model, trained.contexts())))


def _gradient_bottleneck(trained: TrainedModel) -> Measured:
    model, corpus, config = trained.model, trained.corpus, trained.config
    tokens = corpus.test[: len(rank_tokens(corpus, config)) + 1]
    indices = np.array(even_indices(len(tokens), CONTEXTS))
    tokens_read = tokens[: indices.max() + 1]
    contexts_nC = context_vectors(model, tokens_read, window=config.evaluation.window)[indices]
    targets_n = torch.tensor(tokens[indices + 1])
    weight_VD = model.exact_output_weight()
    return Measured(gradient_bottleneck_metrics(model.output, weight_VD, contexts_nC, targets_n))


def _bent_softmax(
    trained: TrainedModel, word: str, bends: Mapping[str, OutputLayerConfig]
) -> Measured:
    if not isinstance(trained.config.output_layer, SoftmaxConfig):
        return Measured({})
    contexts_NC = trained.contexts()
    model, metrics = copy.deepcopy(trained.model), dict[str, Metric]()
    bent_model = replace(trained, model=model)
    for bend, layer in bends.items():
        model.output.function = pointwise_function(layer)
        chunk_streams = (
            log_probability_chunks(network, contexts_NC) for network in (model, trained.model)
        )
        kls = [
            kl_div(q.double(), p.double(), reduction="sum", log_target=True).item()
            for q, p in zip(*chunk_streams, strict=True)
        ]
        kl_ranks = kl_ranks_after(model, contexts_NC, bounds=(EPOCH_BOUND,)).ranks
        values = {
            **_perplexity(bent_model).metrics,
            "press_rank": press_rank(spectrum_at(model, contexts_NC)),
            f"kl_rank_{EPOCH_BOUND}": kl_ranks[EPOCH_BOUND],
            # KL(plain || bent softmax) in nats per context.
            "kl_from_softmax": sum(kls) / len(contexts_NC),
        }
        metrics |= {f"{word} {bend} {name}": value for name, value in values.items()}
    return Measured(metrics)


def _top_k(trained: TrainedModel) -> Measured:
    model, corpus, config = trained.model, trained.corpus, trained.config
    return Measured(top_k_metrics(model, corpus, config, default_contexts(corpus, config)))


def _top_k_of_file(trained: TrainedModel, file: ContextsFile) -> Measured:
    model, corpus = trained.model, trained.corpus
    require_in_text(file, test_words(corpus.name, data_dir=trained.runtime.data_dir), corpus.name)
    prefix = f"top_k-{file.tag}"
    return Measured(top_k_metrics(model, corpus, trained.config, file.contexts, prefix=prefix))


def _published_similarity(trained: TrainedModel) -> Measured:
    runtime = trained.runtime
    benchmarks = read_published(runtime.benchmarks_dir or runtime.data_dir)
    return _similarity(trained, benchmarks, "similarity")


def _similarity(trained: TrainedModel, benchmarks: Iterable[Benchmark], prefix: str) -> Measured:
    embedding_VD = trained.model.embedding_VD.detach().float().cpu().numpy()
    vocabulary = trained.corpus.vocabulary
    return Measured(similarity_metrics(embedding_VD, vocabulary, benchmarks, prefix=prefix))


BY_NAME: Mapping[str, Callable[[TrainedModel], Measured]] = {
    PERPLEXITY: _perplexity,
    SPECTRUM: _spectrum,
    TOP_K: _top_k,
    WORD_SIMILARITY: _published_similarity,
    KL_RANK: _kl_rank,
    GRADIENT_BOTTLENECK: _gradient_bottleneck,
    BENT_SOFTMAX: partial(_bent_softmax, word="bent", bends=SOFTCAPS),
    TURNED_SOFTMAX: partial(_bent_softmax, word="turned", bends=TURNS),
    CENTRED_SPECTRUM: _centred_spectrum,
    SPECTRUM_BY_EPOCH: lambda trained: Measured(ranks_by_epoch_metrics(trained.epochs)),
}
