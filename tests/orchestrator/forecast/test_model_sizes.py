"""What plans reckon with is what a model does: operations are counted by torch, checkpoints are
weighed."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from safetensors.torch import save
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from orchestrator.forecast import estimate, kept_bytes, running_bytes
from orchestrator.forecast.disk import CHECKPOINTS, RECORDS_BYTES
from orchestrator.forecast.estimates import core_seconds
from search_spaces.transformer import transformer
from tests.support import tiny_trial
from trainables.config import (
    CorpusConfig,
    MosConfig,
    OutputLayerConfig,
    SoftmaxConfig,
    TransformerTrialConfig,
    head_products,
    mixture_products,
    model_size,
)
from trainables.corpora import identity
from trainables.language_model import Transformer
from trainables.runtime import Runtime
from trainables.training import Trainer

CORPUS = CorpusConfig(name="tiny", sha256="0" * 64)
SMALL = {
    "training.batch_size": 3,
    "training.window": 10,
    "evaluation.window": 10,
    "training.epochs": 2,
    "training.warm_up_tokens": 100,
}


def trial(
    layer: OutputLayerConfig | None = None, *, head_rank: int | None = None
) -> TransformerTrialConfig:
    head: Literal["tied", "untied"] = "tied" if head_rank is None else "untied"
    config = transformer(CORPUS, layer or SoftmaxConfig(), width=32, head=head, head_rank=head_rank)
    return config.with_values(SMALL | {"model.heads": 2})


def counted_products(config: TransformerTrialConfig) -> float:
    """Of a forward pass, a token: half of torch's operations."""
    model = Transformer(config.model, config.output_layer, tiny_trial.VOCABULARY).eval()
    tokens_TB = torch.zeros(config.training.window, config.training.batch_size, dtype=torch.long)
    # As one product and another one, attention has operations that are counted.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        contexts = model.contexts(tokens_TB, model.zero_state(config.training.batch_size))
        model.output.log_probabilities(contexts.dropped_TBC.flatten(0, 1), model.output_weight())
    return counter.get_total_flops() / 2 / tokens_TB.numel()


@pytest.mark.parametrize("head_rank", [None, 5])
@pytest.mark.parametrize(("layer", "experts"), [(SoftmaxConfig(), 1), (MosConfig(mixtures=4), 4)])
def test_products_of_a_transformer_are_those_that_torch_counts(
    layer: OutputLayerConfig, experts: int, head_rank: int | None
) -> None:
    config, words = trial(layer, head_rank=head_rank), tiny_trial.VOCABULARY
    reckoned = model_size(config).products + mixture_products(config) + head_products(config, words)
    logits = experts * words * config.model.width
    prior = 4 * config.model.width if experts > 1 else 0
    assert counted_products(config) == pytest.approx(reckoned + logits + prior, rel=1e-6)


@pytest.mark.parametrize("head_rank", [None, 5])
def test_checkpoints_and_kept_weights_are_as_large_as_is_said(head_rank: int | None) -> None:
    config = trial(head_rank=head_rank)
    trainer = Trainer(config, tiny_trial.corpus(), Runtime())
    tiny_trial.train(trainer)
    checkpoint, kept = len(save(trainer.snapshot()[0])), len(save(trainer.kept))
    said_kept = kept_bytes(config, tiny_trial.IDENTITY)
    said_checkpoint = (running_bytes(config, tiny_trial.IDENTITY) - said_kept) / CHECKPOINTS
    assert kept <= said_kept <= kept + RECORDS_BYTES
    assert checkpoint <= said_checkpoint <= checkpoint + RECORDS_BYTES


def test_time_is_in_proportion_to_epochs_and_to_what_a_token_costs() -> None:
    text = identity("ptb", data_dir=None)
    config = transformer(CorpusConfig(name="ptb", sha256="0" * 64), SoftmaxConfig())
    twice = config.with_values({"training.epochs": 2 * config.training.epochs})
    assert estimate(twice, text).gpu_hours == pytest.approx(2 * estimate(config, text).gpu_hours)
    narrow = transformer(config.corpus, SoftmaxConfig(), width=256)
    assert core_seconds(narrow, text) < core_seconds(config, text) / 2


def test_memory_holds_weights_and_moments_and_never_all_logits() -> None:
    text = identity("ptb", data_dir=None)
    config = transformer(CorpusConfig(name="ptb", sha256="0" * 64), SoftmaxConfig())
    memory = estimate(config, text)
    weights_gb = 4 * 4 * (8 * (4 * 512**2 + 3 * 512 * 1368) + 10_000 * 512) / 1e9
    # Logits of mixtures of fifteen, all at once.
    plain_gb = 4 * 32 * 256 * 15 * text.vocabulary_size / 1e9
    mixture = estimate(transformer(config.corpus, MosConfig()), text)
    assert weights_gb < memory.gpu_memory_gb < mixture.gpu_memory_gb < weights_gb + 2 * plain_gb
