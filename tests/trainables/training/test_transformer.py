from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.support import tiny_transformer, transformer_formulas
from tests.support.protocols import FloatingReference
from tests.support.tiny_trial import corpus, train
from trainables.config import (
    GssConfig,
    LmsPlifConfig,
    MosConfig,
    OutputLayerConfig,
    SoftmaxConfig,
    TransformerTrialConfig,
)
from trainables.measurements import context_vectors
from trainables.runtime import Runtime
from trainables.training import Trainer, mean_loss

STEPS = 12


class Reference(FloatingReference):
    """AdamW training in float64, as in Loshchilov and Hutter (2019), algorithm 2."""

    def __init__(self, trainer: Trainer, tokens: np.ndarray, total_tokens: int) -> None:
        super().__init__(trainer, tokens)
        assert isinstance(trainer.config, TransformerTrialConfig)
        self.config, self.progress = trainer.config, trainer.progress
        self.total_tokens = total_tokens

    def step(self) -> float:
        training, losses, position = self.config.training, [], self.progress.position
        for stream in self.streams:
            window = torch.from_numpy(stream[position : position + training.window + 1])
            log_p = transformer_formulas.log_p(self.config, self.at, window[:-1])
            losses.append(-log_p[torch.arange(training.window), window[1:]].mean())
        loss = torch.stack(losses).mean()
        gradients = self.clipped_gradients(loss, training.gradient_clip_norm)
        self.steps += 1
        self.tokens += len(self.streams) * training.window
        with torch.no_grad():
            for name, gradient in gradients.items():
                self.move(name, gradient)
        return loss.item()

    def share_of_rate(self) -> float:
        training = self.config.training
        if self.tokens < training.warm_up_tokens:
            return self.tokens / training.warm_up_tokens
        cosine_tokens = self.total_tokens - training.warm_up_tokens
        way = (self.tokens - training.warm_up_tokens) / cosine_tokens
        final = training.final_rate_share
        return final + (1 - final) * (1 + math.cos(math.pi * way)) / 2

    def move(self, name: str, gradient: Tensor) -> None:
        training, weight = self.config.training, self.at[name]
        rate = training.learning_rate
        if name == "output.function.weight_K":
            rate = self.config.output_layer.learning_rate  # type: ignore[union-attr]
        rate *= self.share_of_rate()
        change = self.adam(name, gradient, (training.beta1, training.beta2))
        if name.endswith(("weight_OI", "VD", "left_VR", "right_RD", "prior_KC", "latent_KDC")):
            weight -= rate * training.weight_decay * weight
        weight -= rate * change


@pytest.mark.parametrize(
    ("layer", "head"),
    [
        (GssConfig(c=-1.5, k=2.5), {}),
        (LmsPlifConfig(knots=20), {"head": "untied"}),
        (MosConfig(mixtures=2, latent_dropout=0), {"head": "untied", "head_rank": 3}),
    ],
    ids=["gss-tied", "lms_plif-untied", "mos-rank"],
)
def test_steps_agree_with_the_protocol(layer: OutputLayerConfig, head: dict[str, object]) -> None:
    """The learning rate is low, because rounding can flip the sign of a gradient near zero.

    Adam's first steps depend only on the gradients' signs.
    """
    config = tiny_transformer.trial(
        output_layer=layer,
        model={"dropout": 0.0} | head,
        window=5,
        learning_rate=0.002,
        warm_up_tokens=100,
        weight_decay=1.0,
        epochs=2,
        epoch_tokens=STEPS * 10,
    )
    text = corpus(train_tokens=300)
    trainer = Trainer(config, text, Runtime())
    reference = Reference(trainer, text.train, total_tokens=STEPS * 20)
    reference.assert_agrees(trainer, reference.step, STEPS)


def test_passes_have_whole_windows() -> None:
    text = corpus(train_tokens=403)  # four streams of 100 tokens: windows of 12 and the next token
    trainer = Trainer(tiny_transformer.trial(), text, Runtime())
    passes: list[list[int]] = [[]]
    while len(passes) <= 100:
        window = trainer.next_window()
        inputs_TB, targets_N = trainer.tokens(window)
        assert inputs_TB.shape == (12, 4) and torch.equal(inputs_TB[1:].flatten(), targets_N[:-4])
        passes[-1] += range(*window[:2])
        trainer.advance(window)
        if trainer.ends_epoch:
            passes.append([])
    for read in passes[:-1]:
        assert read == [*range(read[0], read[-1] + 1)] and 99 - 12 < read[-1] + 1 <= 99
    assert {read[0] for read in passes[:-1]} == set(range(12))


def test_text_shorter_than_a_window() -> None:
    config = tiny_transformer.trial(window=100, epochs=2)
    trainer = Trainer(config, corpus(train_tokens=40), Runtime())
    train(trainer)
    assert [epoch.tokens for epoch in trainer.progress.epochs] == [36, 72]


def test_validation_predicts_from_the_window() -> None:
    config = tiny_transformer.trial(output_layer=SoftmaxConfig())
    trainer, tokens = Trainer(config, corpus(), Runtime()), corpus().valid[:62]
    at = {name: p.detach().double() for name, p in trainer.model.named_parameters()}
    losses = []
    for stream in torch.from_numpy(tokens).view(2, 31):
        for inputs, targets in zip(stream[:-1].split(12), stream[1:].split(12), strict=True):
            log_p = transformer_formulas.log_p(config, at, inputs)
            losses.append(-log_p[torch.arange(len(inputs)), targets])
    loss = mean_loss(trainer.model, tokens, batch=2, window=12)
    assert loss == pytest.approx(torch.cat(losses).mean().item(), rel=1e-5)
    contexts_ND = context_vectors(trainer.model, tokens, window=12)
    expected = [
        transformer_formulas.contexts(config.model, at, part)
        for part in torch.from_numpy(tokens).split(12)
    ]
    torch.testing.assert_close(contexts_ND.double(), torch.cat(expected), rtol=0, atol=1e-5)
