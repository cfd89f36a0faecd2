from __future__ import annotations

from typing import Literal

import pytest
import torch
from safetensors.torch import save
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from orchestrator.forecast import kept_bytes, running_bytes
from orchestrator.forecast.disk import CHECKPOINTS, RECORDS_BYTES
from search_spaces.transformer import transformer
from tests.support import tiny_trial
from trainables.config import (
    CorpusConfig,
    EtAsgdConfig,
    LanguageTrialConfig,
    MosConfig,
    OutputLayerConfig,
    SoftmaxConfig,
    TransformerTrialConfig,
    head_products,
    mixture_products,
    model_size,
)
from trainables.language_model import Transformer
from trainables.runtime import Runtime
from trainables.training import Trainer

CORPUS = CorpusConfig(name="tiny", sha256="0" * 64)
SMALL = {
    "model.heads": 2,
    "training.batch_size": 3,
    "training.window": 10,
    "evaluation.window": 10,
    "training.epochs": 2,
    "training.warm_up_tokens": 100,
}


def trial(layer: OutputLayerConfig, *, head_rank: int | None = None) -> TransformerTrialConfig:
    head: Literal["tied", "untied"] = "tied" if head_rank is None else "untied"
    config = transformer(CORPUS, layer, width=32, head=head, head_rank=head_rank)
    return config.with_values(SMALL)


def lstm(optimizer: Literal["sgd", "adam"]) -> LanguageTrialConfig:
    averaging = EtAsgdConfig(switch_epoch=1)
    return tiny_trial.trial(optimizer=optimizer, learning_rate=0.001, epochs=2, averaging=averaging)


def counted_products(config: TransformerTrialConfig) -> float:
    """Return a forward pass's multiplications per token: half of torch's operation count."""
    model = Transformer(config.model, config.output_layer, tiny_trial.VOCABULARY).eval()
    tokens_TB = torch.zeros(config.training.window, config.training.batch_size, dtype=torch.long)
    # torch's counter sees attention only if it is computed by separate products.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        contexts = model.contexts(tokens_TB, model.zero_state(config.training.batch_size))
        model.output.log_probabilities(contexts.dropped_TBC.flatten(0, 1), model.output_weight())
    return counter.get_total_flops() / 2 / tokens_TB.numel()


@pytest.mark.parametrize("head_rank", [None, 5])
@pytest.mark.parametrize(("layer", "experts"), [(SoftmaxConfig(), 1), (MosConfig(mixtures=4), 4)])
def test_products_equal_torchs_count(
    layer: OutputLayerConfig, experts: int, head_rank: int | None
) -> None:
    config, words = trial(layer, head_rank=head_rank), tiny_trial.VOCABULARY
    products = model_size(config).products + mixture_products(config) + head_products(config, words)
    logits = experts * words * config.model.width
    prior = 4 * config.model.width if experts > 1 else 0
    assert counted_products(config) == pytest.approx(products + logits + prior, rel=1e-6)


@pytest.mark.parametrize(
    "config",
    [trial(SoftmaxConfig()), trial(SoftmaxConfig(), head_rank=5), lstm("sgd"), lstm("adam")],
    ids=["transformer", "head of rank 5", "sgd", "adam"],
)
def test_file_sizes_match_forecast(config: LanguageTrialConfig) -> None:
    trainer = Trainer(config, tiny_trial.corpus(), Runtime())
    tiny_trial.train(trainer)
    checkpoint, weights = len(save(trainer.snapshot()[0])), len(save(trainer.kept))
    all_kept = kept_bytes(config, tiny_trial.IDENTITY)
    one_checkpoint = (running_bytes(config, tiny_trial.IDENTITY) - all_kept) / CHECKPOINTS
    assert weights <= all_kept <= weights + RECORDS_BYTES
    assert checkpoint <= one_checkpoint <= checkpoint + RECORDS_BYTES
