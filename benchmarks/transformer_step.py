"""A training step of a Transformer against the same model written plainly in PyTorch: forward,
backward, AdamW.

`python -m benchmarks.transformer_step`. Plain means: nn.Embedding, nn.Linear, nn.RMSNorm,
nn.Dropout, scaled_dot_product_attention, logits materialised, cross_entropy, torch.optim.AdamW
(fused). Both have the same weights before they are timed, and the same loss on the same tokens, or
this says so and stops."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention, silu

from benchmarks.side_by_side import compare, print_table
from trainables.config import (
    CorpusConfig,
    SoftmaxConfig,
    TransformerConfig,
    TransformerTrainingConfig,
    TransformerTrialConfig,
)
from trainables.corpora import Corpus
from trainables.runtime import Runtime
from trainables.training import Trainer, mean_loss

SIZES: dict[str, tuple[dict[str, Any], dict[str, Any], int, int]] = {
    "quick": ({"width": 64, "layers": 2, "heads": 2}, {"batch_size": 16, "window": 32}, 2_000, 20),
    "larger": (
        {"width": 256, "layers": 4, "heads": 4},
        {"batch_size": 8, "window": 128},
        10_000,
        1,
    ),
}
"""Model, training, words, and steps a round."""


class PlainLayer(nn.Module):
    """One layer as one writes it down."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        width, hidden = config.width, config.feed_forward_width
        self.heads = config.heads
        self.attention_norm, self.feed_forward_norm = (
            nn.RMSNorm(width, eps=1e-6) for _ in range(2)
        )
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.projection = nn.Linear(width, width, bias=False)
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, hidden_BTD: Tensor, cos_TK: Tensor, sin_TK: Tensor) -> Tensor:
        batch, steps, width = hidden_BTD.shape
        joint = self.query_key_value(self.attention_norm(hidden_BTD)).split(width, 2)
        query, key, value = (
            part.view(batch, steps, self.heads, -1).transpose(1, 2) for part in joint
        )
        query, key = (part * cos_TK + turned(part) * sin_TK for part in (query, key))
        attended = scaled_dot_product_attention(query, key, value, is_causal=True)
        attended = self.projection(attended.transpose(1, 2).reshape(batch, steps, width))
        hidden_BTD = hidden_BTD + self.dropout(attended)
        normed = self.feed_forward_norm(hidden_BTD)
        return hidden_BTD + self.dropout(self.down(silu(self.gate(normed)) * self.up(normed)))


def turned(values: Tensor) -> Tensor:
    """Every pair by a quarter turn."""
    first, second = values.chunk(2, -1)
    return torch.cat([-second, first], -1)


class PlainTransformer(nn.Module):
    """The model with a softmax and tied weights."""

    def __init__(self, config: TransformerConfig, vocabulary: int, window: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, config.width)
        self.scale = 4 * config.width**0.5
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(PlainLayer(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width, eps=1e-6)
        self.output = nn.Linear(config.width, vocabulary)
        self.output.weight = self.embedding.weight
        width = config.width // config.heads
        angle_Ti = torch.outer(
            torch.arange(window), 10_000.0 ** -(torch.arange(0, width, 2) / width)
        )
        self.register_buffer("cos_TK", angle_Ti.cos().repeat(1, 2))
        self.register_buffer("sin_TK", angle_Ti.sin().repeat(1, 2))

    def forward(self, tokens_BT: Tensor) -> Tensor:
        hidden = self.dropout(self.embedding(tokens_BT) * self.scale)
        for layer in self.layers:
            hidden = layer(hidden, self.cos_TK, self.sin_TK)
        return self.output(self.norm(hidden))

    @torch.no_grad()
    def take_weights(self, trainer: Trainer) -> None:
        """Copy those of the trainer's model."""
        theirs = dict(trainer.model.named_parameters())
        self.embedding.weight.copy_(theirs["embedding_VD"])
        self.norm.weight.copy_(theirs["norm.weight"])
        self.output.bias.copy_(theirs["output.bias_V"])
        for number, layer in enumerate(self.layers):
            at = f"layers.{number}."
            assert isinstance(layer, PlainLayer)
            layer.query_key_value.weight.copy_(theirs[f"{at}attention.query_key_value.weight_OI"])
            layer.projection.weight.copy_(theirs[f"{at}attention.projection.weight_OI"])
            gate, up = theirs[f"{at}feed_forward.gate_up.weight_OI"].chunk(2)
            layer.gate.weight.copy_(gate)
            layer.up.weight.copy_(up)
            layer.down.weight.copy_(theirs[f"{at}feed_forward.projection.weight_OI"])


def new_trainer(size: str) -> Trainer:
    """Of that size, on random text."""
    model, training, vocabulary, _ = SIZES[size]
    tokens = np.random.default_rng(0).integers(vocabulary, size=40_000)
    corpus = Corpus(
        name="random",
        train=tokens,
        valid=tokens[:2_000],
        test=tokens,
        vocabulary=tuple(map(str, range(vocabulary))),
    )
    config = TransformerTrialConfig(
        seed=1,
        corpus=CorpusConfig(name="random", sha256="0" * 64),
        model=TransformerConfig(**model),
        output_layer=SoftmaxConfig(),
        training=TransformerTrainingConfig(**training),
    )
    return Trainer(config, corpus, Runtime())


def prepare_project(size: str, threads: int) -> Callable[[], object]:
    """Steps of the project's own training loop."""
    torch.set_num_threads(threads)
    trainer, steps = new_trainer(size), SIZES[size][3]

    def run() -> None:
        for _ in range(steps):
            trainer.step()
            trainer.epoch_is_over()

    return run


def prepare_plain(size: str, threads: int) -> Callable[[], object]:
    """The same steps, plainly."""
    torch.set_num_threads(threads)
    trainer, steps = new_trainer(size), SIZES[size][3]
    _, shape, vocabulary, _ = SIZES[size]
    training = trainer.config.training
    assert isinstance(training, TransformerTrainingConfig) and isinstance(
        trainer.config.model, TransformerConfig
    )
    model = PlainTransformer(trainer.config.model, vocabulary, training.window)
    model.take_weights(trainer)
    _require_equal(model, trainer, training.window)
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=1e-3,
        betas=(training.beta1, training.beta2),
        weight_decay=0.1,
        fused=True,
    )
    tokens_BT = torch.randint(vocabulary, (shape["batch_size"], training.window + 1))

    def run() -> None:
        for _ in range(steps):
            loss = cross_entropy(model(tokens_BT[:, :-1]).flatten(0, 1), tokens_BT[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), training.gradient_clip_norm)
            optimizer.step()

    return run


def _require_equal(model: PlainTransformer, trainer: Trainer, window: int) -> None:
    tokens = trainer.corpus.valid[: window + 1]
    loss = mean_loss(trainer.model, tokens, batch=1, window=window, split="valid")
    with torch.no_grad():
        text = torch.from_numpy(tokens)
        expected = cross_entropy(model.eval()(text[None, :-1])[0], text[1:]).item()
    model.train()
    if abs(loss - expected) > 1e-4:
        raise SystemExit(f"the two models differ: losses {loss} and {expected}; fix this benchmark")


def main() -> None:
    """Print one table for each size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", choices=tuple(SIZES), default=tuple(SIZES))
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    for size in options.sizes:
        variants = {
            "plain": partial(prepare_plain, size, options.threads),
            "project": partial(prepare_project, size, options.threads),
        }
        timings = compare(variants, rounds=options.rounds)
        model, training, vocabulary, steps = SIZES[size]
        title = f"{size}: {steps} steps, {model}, {training}, V = {vocabulary:,}"
        print_table(title, timings, reference="plain")
        print(f"project / plain: {timings['project'].median_s / timings['plain'].median_s:.3f}")


if __name__ == "__main__":
    main()
