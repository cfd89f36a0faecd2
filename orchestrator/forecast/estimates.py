"""Estimates of trials' time and memory, and how they are computed."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.plan import test_tokens, text_of, valid_tokens, vocabulary_size
from search_spaces.awd_lstm import V100_SECONDS_PER_EPOCH, awd_lstm
from trainables.config import (
    AnyConfig,
    Command,
    GssConfig,
    LanguageTrialConfig,
    LmsPlifConfig,
    LmsPlifFrozenConfig,
    MixtureConfig,
    MocConfig,
    MonotoneNnConfig,
    MosConfig,
    MosPlifConfig,
    OutputLayerConfig,
    SigSoftmaxConfig,
    SoftcapConfig,
    SoftmaxConfig,
    Trainable,
    TransformerTrialConfig,
    chunk_rows,
    head_products,
    mixture_products,
    model_size,
)
from trainables.corpora import PUBLISHED_CORPORA, CorpusIdentity
from trainables.parameters import parameter_count

TIMED_LAYERS: dict[str, OutputLayerConfig] = {
    "softmax": SoftmaxConfig(),
    "sigsoftmax": SigSoftmaxConfig(),
    "gss": GssConfig(c=-1.5, k=2.5),
    "lms_plif": LmsPlifConfig(),
    "mos": MosConfig(),
}
TIME_SOURCES = {"lms_plif_frozen": "lms_plif", "mos_plif": "mos", "softcap": "gss"}
"""Layers without a published time, and the layer whose time is scaled. Default: softmax."""
CORE_FLOPS = 2.4e10
"""Operations per second of one core, measured in 5 quick trials (benchmarks/RESULTS.md)."""
CORE_FLOPS_FLOAT64 = 3.5e10
# For trials that train no language model.
GPU_FLOPS = 3e12
"""Operations per second of a V100 on small matrices, a fifth of its peak."""
SOFTMAX_OPERATIONS = 40
"""Cost of one logit's exponential, maximum and sums, in matrix operations."""
# Measured with synthetic 512 x 2,000 matrices on one core: 0.12 to 0.16 s for softmax, 0.3 to
# 0.45 s for layers that bend the logits.
KL_RANK_OPERATIONS = 12 * 300
"""Operations per logit to find a KL rank. The search tests 8 to 19 ranks or more."""
TRIAL_OVERHEAD_S = 1.0
"""Seconds to read the corpus, build the model and write the result."""
STACK = 16
"""Largest number of trials that train as one model. 16 trials fully use the GPU."""
PROCESS_BYTES = 600e6
"""Memory of Python, torch and a corpus."""
_GPU_BASIS = (
    "GPU time: published seconds per epoch on a V100 (AAAI 2021, Table 2), scaled by operations "
    "for other configs."
)
CORE_BASIS = (
    "Core time: operations at the measured speed of one core. Memory: weights, activations, chunks "
    "of logits and the Gram matrix."
)
BASIS = f"{_GPU_BASIS} {CORE_BASIS}"


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Size, time and memory of one trial; 0 if unknown. Only core hours include measurements."""

    parameters: int = 0
    gpu_hours: float = 0.0
    core_hours: float = 0.0
    memory_gb: float = 0.0
    """Memory of the process, if it trains on a CPU."""
    gpu_memory_gb: float = 0.0
    """GPU memory if it trains on a GPU. Its measurements need about as much main memory."""


def estimate(config: AnyConfig, corpus: CorpusIdentity) -> Estimate:
    """Return the time and memory of one trial, on one V100 and on one core.

    `corpus` is the study's corpus, even if the trial generates its text.
    """
    if isinstance(config, Trainable | Command):
        return Estimate()
    corpus = text_of(config, corpus)
    if isinstance(config, LanguageTrialConfig):
        parameters = parameter_count(config, vocabulary_size(config, corpus))
        gpu_bytes = _training_bytes(config, corpus, "cuda")
        array_bytes = max(_training_bytes(config, corpus, "cpu"), _measuring_bytes(config, corpus))
    else:
        parameters, gpu_bytes = config.parameters, config.memory_bytes
        array_bytes = gpu_bytes
    return Estimate(
        parameters=parameters,
        gpu_hours=gpu_seconds(config, corpus) / 3600,
        core_hours=core_seconds(config, corpus) / 3600,
        memory_gb=(array_bytes + PROCESS_BYTES) / 1e9,
        gpu_memory_gb=gpu_bytes / 1e9,
    )


def gpu_seconds(config: AnyConfig, corpus: CorpusIdentity) -> float:
    """Return a language model's training time on one V100, or another trial's total time."""
    if not isinstance(config, LanguageTrialConfig):
        return config.operations / GPU_FLOPS
    corpus = text_of(config, corpus)
    text = corpus if corpus.name in V100_SECONDS_PER_EPOCH else PUBLISHED_CORPORA["ptb"]
    times = V100_SECONDS_PER_EPOCH[text.name]
    layer = config.output_layer.name
    timed_layer = layer if layer in times else TIME_SOURCES.get(layer, "softmax")
    paper_config = awd_lstm(
        config.corpus.model_copy(update={"vocabulary_limit": None}), TIMED_LAYERS[timed_layer]
    )
    paper_operations = text.train_tokens * _operations_per_token(paper_config, text.vocabulary_size)
    return times[timed_layer] * _train_operations(config, corpus) / paper_operations


def core_seconds(config: AnyConfig, corpus: CorpusIdentity) -> float:
    """Return the total time on one core: training, validation, test and measurements."""
    if not isinstance(config, LanguageTrialConfig):
        return config.operations / CORE_FLOPS
    corpus = text_of(config, corpus)
    vocabulary, epochs = vocabulary_size(config, corpus), config.training.epochs
    per_token = _operations_per_token(config, vocabulary)
    valid_count, test_count = valid_tokens(config, corpus), test_tokens(config, corpus)
    rows = _measured_rows(config, corpus)
    epoch_rows = min(config.evaluation.epoch_rank_contexts or 0, valid_count)
    forward = (epochs * (valid_count + epoch_rows) + test_count + rows) * per_token / 3
    work, gram = _train_operations(config, corpus) + forward, epochs
    if isinstance(config, TransformerTrialConfig):  # KL ranks by epoch as well
        work += epochs * epoch_rows * vocabulary * KL_RANK_OPERATIONS
        gram *= 2
    spectra = _spectrum_operations(rows, vocabulary)
    spectra += gram * _spectrum_operations(epoch_rows, vocabulary)
    return TRIAL_OVERHEAD_S + work / CORE_FLOPS + spectra / CORE_FLOPS_FLOAT64


def _measured_rows(config: LanguageTrialConfig, corpus: CorpusIdentity) -> int:
    test_count = test_tokens(config, corpus)
    return min(test_count, config.evaluation.rank_contexts or test_count)


def _spectrum_operations(rows: int, columns: int) -> float:
    side = min(rows, columns)
    return rows * columns * side + 4 / 3 * side**3


def _train_operations(config: LanguageTrialConfig, corpus: CorpusIdentity) -> float:
    epoch_tokens = config.training.epoch_tokens or corpus.train_tokens
    per_token = _operations_per_token(config, vocabulary_size(config, corpus))
    return config.training.epochs * epoch_tokens * per_token


def _operations_per_token(config: LanguageTrialConfig, vocabulary: int) -> float:
    size, layer = model_size(config), config.output_layer
    # A mixture of contexts has one row of logits; other mixtures have a row per component.
    experts = (
        layer.mixtures
        if isinstance(layer, MixtureConfig) and not isinstance(layer, MocConfig)
        else 1
    )
    logits = vocabulary * experts
    products = size.products + mixture_products(config) + head_products(config, vocabulary)
    # Six operations per product, forward and backward.
    return 6.0 * (
        products + logits * config.model.embedding_width
    ) + logits * _operations_per_logit(layer)


def _operations_per_logit(layer: OutputLayerConfig) -> float:
    match layer:
        case SigSoftmaxConfig() | GssConfig() | SoftcapConfig():
            return 2.0 * SOFTMAX_OPERATIONS
        case LmsPlifConfig() | LmsPlifFrozenConfig() | MosPlifConfig():
            return 3.0 * SOFTMAX_OPERATIONS
        case MonotoneNnConfig(units=units):
            return (1.0 + 2.0 * units) * SOFTMAX_OPERATIONS
        case _:
            return SOFTMAX_OPERATIONS


def _training_bytes(config: LanguageTrialConfig, corpus: CorpusIdentity, device_type: str) -> float:
    size, layer = model_size(config), config.output_layer
    vocabulary = vocabulary_size(config, corpus)
    weights = size.copies * parameter_count(config, vocabulary)
    activations = size.tokens * size.activations
    if isinstance(layer, MixtureConfig):
        activations += 6 * size.tokens * layer.mixtures * config.model.embedding_width
    # The product A B of a low-rank head, and its gradient.
    weights += (
        0 if config.model.head_rank is None else 2 * vocabulary * config.model.embedding_width
    )
    plif = isinstance(layer, LmsPlifConfig | LmsPlifFrozenConfig | MosPlifConfig)
    buffers = 6 if plif else 5 if isinstance(layer, MonotoneNnConfig) else 3
    chunk = chunk_rows(vocabulary, config.model.embedding_width, 4, device_type) * vocabulary
    return 4.0 * (weights + activations + buffers * chunk)


def _measuring_bytes(config: LanguageTrialConfig, corpus: CorpusIdentity) -> float:
    vocabulary, rows = vocabulary_size(config, corpus), _measured_rows(config, corpus)
    gram = min(16.0 * vocabulary**2, 16.0 * rows**2 + 4.0 * rows * vocabulary)
    return gram + 2**26 + 4 * 4 * 1024 * vocabulary + 8.0 * parameter_count(config, vocabulary)
