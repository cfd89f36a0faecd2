"""How long trials will take, before they run, and on what basis that is said."""

from __future__ import annotations

from dataclasses import dataclass

from trainables.config import TrialConfig
from trainables.corpora import CorpusIdentity

V100_SECONDS_PER_EPOCH = {
    "ptb": {"softmax": 55.0, "sigsoftmax": 57.0, "gss": 58.0},
    "wikitext-2": {"softmax": 72.0, "sigsoftmax": 83.0, "gss": 87.0},
}
"""AAAI 2021, Table 2, for the configs of the paper."""
PTB_TRAIN_TOKENS, PTB_VOCABULARY = 929_589, 10_000
CORE_FLOPS = 2.4e10
"""Training of small models on one core, in operations a second: 5 quick trials, see benchmarks/RESULTS.md."""
CORE_FLOPS_FLOAT64 = 3.5e10
TRIAL_OVERHEAD_S = 1.0
"""Reading the corpus, building the model, writing the result."""
V100_BASIS = "seconds per epoch on a V100 (AAAI 2021, Table 2), scaled by operations where the config differs"
CORE_BASIS = "operations, at the speed of one core of the machine the project is developed on"


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Time of one trial, measurements included for a core and left out for a GPU, where they do not count."""

    gpu_hours: float
    core_hours: float


def estimate(config: TrialConfig, corpus: CorpusIdentity) -> Estimate:
    """Time of one trial on one V100, and on one core."""
    return Estimate(gpu_hours=_gpu_seconds(config, corpus) / 3600, core_hours=_core_seconds(config, corpus) / 3600)


def _gpu_seconds(config: TrialConfig, corpus: CorpusIdentity) -> float:
    times = V100_SECONDS_PER_EPOCH.get(corpus.name, V100_SECONDS_PER_EPOCH["ptb"])
    published = times[config.output_layer.name]
    paper = config.model_copy(
        update={"model": type(config.model)(), "corpus": config.corpus.model_copy(update={"vocabulary_limit": None})}
    )
    if corpus.name in V100_SECONDS_PER_EPOCH:
        reference = corpus.train_tokens * _operations_per_token(paper, corpus.vocabulary_size)
    else:
        reference = PTB_TRAIN_TOKENS * _operations_per_token(paper, PTB_VOCABULARY)
    return published * _train_operations(config, corpus) / reference


def _core_seconds(config: TrialConfig, corpus: CorpusIdentity) -> float:
    evaluation, vocabulary = config.evaluation, corpus.limited_vocabulary_size(config.corpus.vocabulary_limit)
    per_token = _operations_per_token(config, vocabulary)
    validated = min(corpus.valid_tokens, evaluation.valid_tokens or corpus.valid_tokens) * config.training.epochs
    tested = min(corpus.test_tokens, evaluation.test_tokens or corpus.test_tokens)
    rows = min(tested, evaluation.rank_contexts or tested)
    forward = (validated + tested + rows) * per_token / 3
    spectrum = rows * vocabulary**2 + 4 / 3 * vocabulary**3
    work_s = (_train_operations(config, corpus) + forward) / CORE_FLOPS + spectrum / CORE_FLOPS_FLOAT64
    return TRIAL_OVERHEAD_S + work_s


def _train_operations(config: TrialConfig, corpus: CorpusIdentity) -> float:
    epoch_tokens = config.training.epoch_tokens or corpus.train_tokens
    vocabulary = corpus.limited_vocabulary_size(config.corpus.vocabulary_limit)
    return config.training.epochs * epoch_tokens * _operations_per_token(config, vocabulary)


def _operations_per_token(config: TrialConfig, vocabulary: int) -> float:
    """Forward and backward: six operations a weight and token, for the LSTM layers and the output layer."""
    model = config.model
    recurrent = sum(4 * out * (into + out) for into, out in model.layer_widths)
    return 6.0 * (recurrent + vocabulary * model.embedding_width)
