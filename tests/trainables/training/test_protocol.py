"""Training against an independent float64 implementation, written from the protocol's text.

It shares only initial weights and the generator's state with the package: its LSTM is a loop of
equations, its loss the full softmax, its optimiser a list of subtractions.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.support import output_layer_formulas as formulas
from tests.support import tiny_trial as tiny
from tests.support.protocols import FloatingReference
from trainables.config import AveragingConfig, EtAsgdConfig, MosConfig, NtAsgdConfig, TrialConfig
from trainables.runtime import Runtime
from trainables.training import DivergedError, Trainer
from trainables.training.averaging import should_switch
from trainables.trial_folder import Checkpoints, TrialFolder

STEPS = 25


def lstm(
    x: Tensor, weights: list[Tensor], state: tuple[Tensor, Tensor]
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    w_ih, w_hh, b_ih, b_hh = weights
    h, c = state
    outputs = []
    for step in x:
        i, f, g, o = (step @ w_ih.T + b_ih + h @ w_hh.T + b_hh).chunk(4, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        outputs.append(h)
    return torch.stack(outputs), (h.detach(), c.detach())


class Reference(FloatingReference):
    def __init__(self, trainer: Trainer, tokens: np.ndarray) -> None:
        super().__init__(trainer, tokens)
        assert isinstance(trainer.config, TrialConfig)
        self.config = trainer.config
        self.random = torch.Generator()
        self.random.set_state(trainer.draws.get_state())
        self.position = 0
        model = self.config.model
        sizes = (model.hidden_width, model.hidden_width, model.context_width)
        zeros = [torch.zeros(len(self.streams), size).double() for size in sizes]
        self.zero = [(zero, zero) for zero in zeros]
        self.state = list(self.zero)
        self.averages: list[list[Tensor]] = []

    def step(self, *, average: bool = False) -> float:
        t = self.config.training
        length = len(self.streams[0])
        mean = t.bptt / 2 if torch.rand((), generator=self.random) < 0.05 else t.bptt
        seq_len = max(5, int(mean + 5 * torch.randn((), generator=self.random).item()))
        drawn = min(seq_len, t.bptt + 40)
        seq_len = min(drawn, length - 1 - self.position)
        window = np.stack(
            [s[self.position : self.position + seq_len + 1] for s in self.streams], axis=1
        )
        tokens = torch.from_numpy(window)

        h = self.at["embedding_VD"][tokens[:-1]]
        for index in range(3):
            keys = [f"layers.{index}.{n}" for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
            h, self.state[index] = lstm(h, [self.at[key] for key in keys], self.state[index])
        targets = tokens[1:].reshape(-1)
        output = {name.removeprefix("output."): p for name, p in self.at.items()}
        weight = self.at["embedding_VD"]
        if "head.left_VR" in self.at:
            weight = self.at["head.left_VR"] @ self.at["head.right_RD"]
        rows = formulas.log_p(self.config.output_layer, output, h.reshape(-1, h.shape[-1]), weight)
        loss = -rows[torch.arange(len(targets)), targets].mean()
        total = loss + t.activation_regularisation * (h**2).mean()
        total = total + t.temporal_activation_regularisation * ((h[1:] - h[:-1]) ** 2).mean()
        gradients = self.clipped_gradients(total, t.gradient_clip_norm)
        self.steps += 1
        self.tokens += len(targets)
        warm = min(1.0, self.tokens / t.warm_up_tokens) if t.warm_up_tokens else 1.0
        with torch.no_grad():
            for name, gradient in gradients.items():
                rate = t.learning_rate
                if name == "output.function.weight_K":
                    rate = self.config.output_layer.learning_rate  # type: ignore[union-attr]
                rate *= warm * drawn / t.bptt  # the drawn length, even at the end of the text
                change = gradient + t.weight_decay * self.at[name]
                if t.optimizer == "adam":
                    change = self.adam(name, change, (0.9, 0.999))
                self.at[name] -= rate * change
        if average:
            self.averages.append([self.at[name].detach().clone() for name in self.names])
        self.position += seq_len
        if self.position >= length - 2:
            self.position, self.state = 0, list(self.zero)
        return loss.item()


CONFIGS = (
    *(tiny.trial(output_layer=layer, dropout=False) for layer in formulas.EVERY_LAYER),
    tiny.trial(dropout=False, optimizer="adam", learning_rate=0.002, warm_up_tokens=1_000),
    tiny.trial(output_layer=MosConfig(mixtures=3, latent_dropout=0.0), dropout=False, head_rank=3),
)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.output_layer.name)
def test_steps_agree_with_the_protocol(config: TrialConfig) -> None:
    corpus = tiny.corpus()
    trainer = Trainer(config, corpus, Runtime())
    reference = Reference(trainer, corpus.train)
    reference.assert_agrees(trainer, reference.step, STEPS)
    assert trainer.progress.position == reference.position


@pytest.mark.parametrize("epoch_tokens", [None, 250])
def test_average_is_mean_since_switch(epoch_tokens: int | None) -> None:
    """An epoch of `epoch_tokens` tokens ends inside the text. The next epoch continues there."""
    corpus = tiny.corpus(train_tokens=600)
    averaging = EtAsgdConfig(switch_epoch=1)
    config = tiny.trial(dropout=False, averaging=averaging, epochs=3, epoch_tokens=epoch_tokens)
    trainer = Trainer(config, corpus, Runtime())
    reference = Reference(trainer, corpus.train)
    epochs = 0
    while epochs < 3:
        trainer.step()
        reference.step(average=epochs >= 1)
        if trainer.ends_epoch:
            trainer.end_epoch()
            epochs += 1
    assert trainer.average is not None
    assert [epoch.averaging for epoch in trainer.progress.epochs] == [False, True, True]
    for average, *history in zip(
        trainer.average.tensors.values(), *reference.averages, strict=True
    ):
        torch.testing.assert_close(
            average.double(), torch.stack(history).mean(0), rtol=0, atol=2e-5
        )


def test_best_model_is_kept() -> None:
    config = tiny.trial(epochs=8, averaging=NtAsgdConfig(nonmonotone_interval=2))
    trainer = Trainer(config, tiny.corpus(), Runtime())
    kept_after: dict[int, dict[str, Tensor]] = {}
    while len(trainer.progress.epochs) < 8:
        trainer.step()
        if trainer.ends_epoch:
            epoch = trainer.end_epoch()
            weights: Mapping[str, Tensor] = dict(trainer.model.named_parameters())
            if epoch.averaging and trainer.average:
                weights = trainer.average.tensors
            kept_after[epoch.epoch] = {name: w.detach().clone() for name, w in weights.items()}
    losses = [epoch.valid_loss for epoch in trainer.progress.epochs]
    best = int(np.argmin(losses)) + 1
    assert trainer.progress.kept_epoch == best
    for name, tensor in trainer.kept.items():
        assert torch.equal(tensor, kept_after[best][name])


@pytest.mark.parametrize(
    ("config", "losses", "switches_after"),
    [
        (NtAsgdConfig(nonmonotone_interval=5), [5, 4, 3, 2, 1, 0.5, 0.4, 0.3], None),
        # This exceeds 4, the minimum of all losses but the last five.
        (NtAsgdConfig(nonmonotone_interval=5), [5, 4, 3, 2, 1, 1, 1, 6], 8),
        # There are no losses before the last five.
        (NtAsgdConfig(nonmonotone_interval=5), [5, 4, 3, 2, 1, 5.5], None),
        (EtAsgdConfig(switch_epoch=200), [1.0] * 210, 200),
    ],
)
def test_averaging_starts_by_its_rule(
    config: AveragingConfig, losses: list[float], switches_after: int | None
) -> None:
    switched = (
        number for number in range(1, len(losses) + 1) if should_switch(config, losses[:number])
    )
    assert next(switched, None) == switches_after


def test_diverged_run(tmp_path: Path) -> None:
    trainer = Trainer(tiny.trial(learning_rate=1e9, epochs=3), tiny.corpus(), Runtime())
    with pytest.raises(DivergedError, match=r"loss became .* in epoch 1"):
        trainer.train(Checkpoints(TrialFolder(tmp_path, "x")), lambda _: None)
