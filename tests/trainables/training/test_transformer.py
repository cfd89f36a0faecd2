"""The training of Transformers: against formulas in float64; windows and rates; resumed; down to
the entropy."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.support import tiny_transformer, transformer_formulas
from tests.support.tiny_trial import corpus, train
from trainables.config import (
    GssConfig,
    LmsPlifConfig,
    MosConfig,
    OutputLayerConfig,
    SoftmaxConfig,
    TransformerTrialConfig,
)
from trainables.corpora import Corpus
from trainables.measurements import epoch_ranks
from trainables.measurements.log_probabilities import context_vectors
from trainables.runtime import Runtime
from trainables.training.loop import Trainer
from trainables.training.streams import mean_loss
from trainables.trial_folder.checkpoint import Checkpoints
from trainables.trial_folder.folder import TrialFolder

STEPS = 12


class Reference:
    """The protocol in float64: Loshchilov and Hutter (2019), algorithm 2, with plain lists of
    subtractions."""

    def __init__(
        self,
        trainer: Trainer,
        config: TransformerTrialConfig,
        tokens: np.ndarray,
        total_tokens: int,
    ) -> None:
        self.config, self.total_tokens = config, total_tokens
        named = dict(trainer.model.named_parameters())
        self.at = {
            name: p.detach().double().clone().requires_grad_(p.requires_grad)
            for name, p in named.items()
        }
        self.names = [name for name, p in named.items() if p.requires_grad]
        length = len(tokens) // config.training.batch_size
        self.streams = [
            tokens[b * length : (b + 1) * length] for b in range(config.training.batch_size)
        ]
        self.moments = {
            name: (torch.zeros_like(self.at[name]), torch.zeros_like(self.at[name]))
            for name in self.names
        }
        self.steps = self.tokens = 0

    def step(self, position: int) -> float:
        training, losses = self.config.training, []
        for stream in self.streams:
            window = torch.from_numpy(stream[position : position + training.window + 1])
            log_p = transformer_formulas.log_p(self.config, self.at, window[:-1])
            losses.append(-log_p[torch.arange(training.window), window[1:]].mean())
        loss = torch.stack(losses).mean()
        gradients = torch.autograd.grad(loss, [self.at[name] for name in self.names])
        norm = math.sqrt(sum(float((g**2).sum()) for g in gradients))
        scale = min(1.0, training.gradient_clip_norm / (norm + 1e-6))
        self.steps += 1
        self.tokens += len(self.streams) * training.window
        with torch.no_grad():
            for name, gradient in zip(self.names, gradients, strict=True):
                self.move(name, gradient * scale)
        return loss.item()

    def share_of_rate(self) -> float:
        training = self.config.training
        if self.tokens < training.warm_up_tokens:
            return self.tokens / training.warm_up_tokens
        way = (self.tokens - training.warm_up_tokens) / (
            self.total_tokens - training.warm_up_tokens
        )
        final = training.final_rate_share
        return final + (1 - final) * (1 + math.cos(math.pi * way)) / 2

    def move(self, name: str, gradient: Tensor) -> None:
        training, weight, (mean, square) = self.config.training, self.at[name], self.moments[name]
        slopes = name == "output.function.weight_K"
        rate = (
            getattr(self.config.output_layer, "learning_rate", 0.0)
            if slopes
            else training.learning_rate
        )
        rate *= self.share_of_rate()
        mean += (1 - training.beta1) * (gradient - mean)
        square += (1 - training.beta2) * (gradient**2 - square)
        change = (mean / (1 - training.beta1**self.steps)) / (
            (square / (1 - training.beta2**self.steps)).sqrt() + 1e-8
        )
        is_decayed = name in (
            "embedding_VD",
            "output.prior_KC",
            "output.latent_KDC",
        ) or name.endswith(("weight_OI", "head.weight_VD", "left_VR", "right_RD"))
        weight -= rate * (training.weight_decay * weight if is_decayed else 0.0)
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
    """Where gradients are near zero, Adam's first steps are their signs, which rounding turns:
    hence a low rate."""
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
    reference = Reference(trainer, config, text.train, total_tokens=STEPS * 20)
    for _ in range(STEPS):
        position = trainer.progress.position
        trainer.step()
        found = trainer.epoch_loss.item() / trainer.progress.epoch_tokens
        trainer.epoch_loss.zero_()
        trainer.progress.epoch_tokens = 0
        assert found == pytest.approx(reference.step(position), rel=1e-4)
    for name, parameter in trainer.model.named_parameters():
        difference = (parameter.detach().double() - reference.at[name].detach()).abs().max()
        assert difference < 2e-4, name


def test_passes_have_whole_windows() -> None:
    text = corpus(
        train_tokens=403
    )  # four streams of 100 tokens, and windows of 12 with the token that follows
    trainer = Trainer(tiny_transformer.trial(), text, Runtime())
    passes: list[list[tuple[int, int]]] = [[]]
    while len(passes) <= 100:
        window = trainer.next_window()
        inputs_TB, targets_N = trainer.tokens(window)
        assert inputs_TB.shape == (12, 4) and torch.equal(inputs_TB[1:].flatten(), targets_N[:-4])
        passes[-1].append(window[:2])
        trainer.advance(window)
        if trainer.ends_epoch:
            passes.append([])
    starts = [windows[0][0] for windows in passes[:-1]]
    assert set(starts) == set(range(12))
    for windows in passes[:-1]:
        ends = [end for _, end in windows]
        assert [start for start, _ in windows[1:]] == ends[:-1] and 99 - 12 < ends[-1] <= 99
    read = {step for windows in passes for start, end in windows for step in range(start, end)}
    assert read == set(range(99))


def test_text_shorter_than_a_window() -> None:
    trainer = Trainer(
        tiny_transformer.trial(window=100, epochs=2), corpus(train_tokens=40), Runtime()
    )
    train(trainer)
    assert [epoch.tokens for epoch in trainer.progress.epochs] == [36, 72]


@pytest.mark.parametrize(
    "layer", [LmsPlifConfig(knots=20), MosConfig()], ids=lambda layer: layer.name
)
def test_only_matrices_decay(layer: OutputLayerConfig) -> None:
    model = {"head": "untied", "head_rank": 2}
    trainer = Trainer(tiny_transformer.trial(output_layer=layer, model=model), corpus(), Runtime())
    decayed = {
        p
        for group in trainer.optimizer.param_groups
        if group["weight_decay"]
        for p in group["params"]
    }
    names = {name for name, p in trainer.model.named_parameters() if p in decayed}
    matrices = {"embedding_VD", "head.left_VR", "head.right_RD"} | {
        f"layers.{i}.{branch}.{product}.weight_OI"
        for i in range(2)
        for branch, joint in (("attention", "query_key_value"), ("feed_forward", "gate_up"))
        for product in (joint, "projection")
    }
    mixture = {"output.prior_KC", "output.latent_KDC"} if layer.name == "mos" else set()
    assert names == matrices | mixture
    grouped = [p for group in trainer.optimizer.param_groups for p in group["params"]]
    assert len(grouped) == len(set(grouped)) == len(list(trainer.model.parameters()))


def test_resumed_from_any_step(tmp_path: Path) -> None:
    """With dropout, through files, over the ends of epochs and of passes, whose next start is
    drawn."""
    config = tiny_transformer.trial(
        output_layer=MosConfig(mixtures=2), model={"dropout": 0.3}, epochs=3, epoch_tokens=300
    )
    text, checkpoints = (
        corpus(train_tokens=600),
        Checkpoints(TrialFolder(tmp_path, config.trial_id)),
    )
    straight = Trainer(config, text, Runtime(), epoch_ranks)
    while not straight.finished:
        checkpoints.save(straight.progress.step + 1, *straight.snapshot())
        resumed = Trainer(config, text, Runtime(), epoch_ranks)
        newest = checkpoints.latest("cpu")
        assert newest is not None
        resumed.restore(*newest)
        for trainer in (straight, resumed):
            trainer.step()
            if trainer.ends_epoch:
                trainer.end_epoch()
        tensors, _ = resumed.snapshot()
        assert resumed.progress.position == straight.progress.position
        for name, tensor in straight.snapshot()[0].items():
            assert torch.equal(tensor, tensors[name]), (straight.progress.step, name)
    assert straight.progress.tokens > 600, "more than a pass"


def test_validation_predicts_from_the_window() -> None:
    config = tiny_transformer.trial(output_layer=SoftmaxConfig())
    trainer, tokens = Trainer(config, corpus(), Runtime()), corpus().valid[:62]
    at = {name: p.detach().double() for name, p in trainer.model.named_parameters()}
    losses = []
    for stream in np.split(tokens, 2):
        for start in range(0, 30, 12):
            window = torch.from_numpy(stream[start : min(start + 12, 30) + 1])
            log_p = transformer_formulas.log_p(config, at, window[:-1])
            losses.append(-log_p[torch.arange(len(window) - 1), window[1:]])
    found = mean_loss(trainer.model, tokens, batch=2, window=12, split="valid")
    assert found == pytest.approx(torch.cat(losses).mean().item(), rel=1e-5)
    contexts_ND = context_vectors(trainer.model, tokens, window=12)
    expected = [
        transformer_formulas.contexts(config.model, at, part)
        for part in torch.from_numpy(tokens).split(12)
    ]
    torch.testing.assert_close(contexts_ND.double(), torch.cat(expected), rtol=0, atol=1e-5)


def test_loss_falls_to_the_entropy() -> None:
    """Twenty words, each with a distribution of the next one; the floor is the test text's loss
    under the truth."""
    numbers = np.random.default_rng(3)
    p_VV = numbers.dirichlet(np.full(20, 0.3), size=20)
    states = [0]
    for draw in numbers.random(24_000):
        states.append(min(19, int(np.searchsorted(p_VV[states[-1]].cumsum(), draw))))
    tokens = np.array(states)
    text = Corpus(
        name="chain", train=tokens[:20_000], valid=tokens[20_000:22_000], test=tokens[22_000:],
        vocabulary=tuple(f"w{i}" for i in range(20)),
    )  # fmt: skip
    config = tiny_transformer.trial(
        output_layer=SoftmaxConfig(), model={"width": 24, "layers": 1, "dropout": 0.0}, batch_size=8, window=16,
        learning_rate=0.02, warm_up_tokens=2_000, epochs=3,
    )  # fmt: skip
    trainer = Trainer(config, text, Runtime())
    train(trainer)
    trainer.take_kept_weights()
    floor = -np.log(p_VV[text.test[:-1], text.test[1:]]).mean()
    shares = -np.log(np.bincount(text.train)[text.test[1:]] / len(text.train)).mean()
    loss = mean_loss(trainer.model, text.test, batch=4, window=16, split="test")
    assert shares - floor > 0.8, "there is something to learn"
    assert -0.02 < loss - floor < 0.05
