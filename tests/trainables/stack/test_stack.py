"""A stack of trials against the same trials alone, in float64: the same weights, whatever their
mates and order. Of AWD-LSTMs with both optimizers, and of Transformers."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import Phase as HypothesisPhase
from hypothesis import given, settings
from torch import Tensor

from tests.support import tiny_transformer
from tests.support import tiny_trial as tiny
from trainables.config import (
    AveragingConfig,
    EtAsgdConfig,
    GssConfig,
    LanguageTrialConfig,
    LmsPlifConfig,
    LmsPlifFrozenConfig,
    MocConfig,
    MosConfig,
    MosPlifConfig,
    NtAsgdConfig,
    OutputLayerConfig,
    SigSoftmaxConfig,
    SoftcapConfig,
    SoftmaxConfig,
    TransformerTrialConfig,
    TrialConfig,
)
from trainables.runtime import Runtime
from trainables.stack import Stack, stack_key
from trainables.stack.validation import valid_losses
from trainables.training import Trainer

STEPS = 40
LAYERS: tuple[OutputLayerConfig, ...] = (
    SoftmaxConfig(),
    SigSoftmaxConfig(),
    GssConfig(c=-1.5, k=2.5),
    GssConfig(c=1.0, k=0.5),
    SoftcapConfig(cap=5.0),
    SoftcapConfig(form="sigmoid", cap=23.0),
    MosConfig(mixtures=2, latent_dropout=0.3),
    MosConfig(mixtures=2, latent_dropout=0.0),
    MocConfig(mixtures=3),
    LmsPlifConfig(knots=31, limit=3.0),
    LmsPlifFrozenConfig(knots=31, limit=3.0),
    MosPlifConfig(knots=20, mixtures=2),
)
DROPOUTS = (
    "dropout_embedding_matrix",
    "dropout_embedding",
    "dropout_hidden",
    "dropout_output",
    "dropconnect",
)
rate = st.sampled_from([0.0, 0.1, 0.4])


@pytest.fixture(autouse=True)
def _in_float64() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@st.composite
def lstm_trials(draw: st.DrawFn, optimizer: str, head_rank: int | None) -> TrialConfig:
    """A trial of the tiny AWD-LSTM: everything that a stack leaves to its trials is drawn."""
    averagings: list[AveragingConfig] = [
        EtAsgdConfig(switch_epoch=1),
        NtAsgdConfig(nonmonotone_interval=1),
    ]
    # SGD at a high rate without clipping is unstable: one rounding grows by eight digits in fifty
    # steps.
    clip = draw(st.sampled_from([0.25, 10.0]))
    base = 0.003 if optimizer == "adam" else 5.0 if clip < 1 else 0.5
    config = tiny.trial(
        output_layer=draw(st.sampled_from(LAYERS)),
        head_rank=head_rank,
        averaging=draw(st.sampled_from(averagings)),
        optimizer=optimizer,
        bptt=draw(st.integers(8, 25)),
        learning_rate=base * draw(st.sampled_from([0.5, 1.0, 2.0])),
        weight_decay=draw(st.sampled_from([0.0, 1.2e-6, 1e-2])),
        warm_up_tokens=draw(st.sampled_from([0, 500])),
        gradient_clip_norm=clip,
        activation_regularisation=draw(st.sampled_from([0.0, 2.0])),
        temporal_activation_regularisation=draw(st.sampled_from([0.0, 1.0])),
        epoch_tokens=draw(st.sampled_from([None, 600, 1_000])),
        epochs=100,
    )
    dropouts = {name: draw(rate) for name in DROPOUTS}
    model = config.model.model_copy(
        update={**dropouts, "embedding_noise": draw(st.sampled_from([0.0, 0.1]))}
    )
    return config.model_copy(update={"model": model, "seed": draw(st.integers(1, 5))})


@st.composite
def transformer_trials(draw: st.DrawFn, head: dict[str, Any]) -> TransformerTrialConfig:
    """A trial of the tiny Transformer, likewise."""
    config = tiny_transformer.trial(
        output_layer=draw(st.sampled_from(LAYERS)),
        model={"dropout": draw(rate), **head},
        learning_rate=0.01 * draw(st.sampled_from([0.5, 1.0, 2.0])),
        final_rate_share=draw(st.sampled_from([0.0, 0.1])),
        weight_decay=draw(st.sampled_from([0.0, 0.1, 1.0])),
        warm_up_tokens=draw(st.sampled_from([0, 500])),
        gradient_clip_norm=draw(st.sampled_from([0.25, 10.0])),
        epoch_tokens=draw(st.sampled_from([None, 600, 1_000])),
        epochs=draw(st.sampled_from([20, 100])),
    )
    return config.model_copy(update={"seed": draw(st.integers(1, 5))})


@st.composite
def mates(draw: st.DrawFn, kind: str) -> list[LanguageTrialConfig]:
    """Trials that can be trained as one."""
    rank = draw(st.sampled_from([None, 3]))
    if kind == "adamw":
        heads: list[dict[str, Any]] = [{}, {"head": "untied"}, {"head": "untied", "head_rank": 3}]
        head = draw(st.sampled_from(heads))
        return draw(st.lists(transformer_trials(head), min_size=1, max_size=4))
    return draw(st.lists(lstm_trials(kind, rank), min_size=1, max_size=4))


@dataclass(frozen=True)
class Phase:
    """So many steps of a trial, in the stack or alone; before them, it may go through a
    checkpoint."""

    steps: int
    stacked: bool
    restored: bool


@st.composite
def phases(draw: st.DrawFn) -> list[Phase]:
    """Phases of all steps together; the first steps may be waited for, as by a trial that joins
    later."""
    ends = sorted(draw(st.sets(st.integers(1, STEPS - 1), max_size=3)) | {STEPS})
    lengths = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    return [Phase(length, draw(st.integers(0, 3)) > 0, draw(st.booleans())) for length in lengths]


def one_step(trainer: Trainer) -> None:
    trainer.step()
    ended(trainer)


def ended(trainer: Trainer, valid_loss: float | None = None) -> None:
    if trainer.ends_epoch:
        trainer.end_epoch(valid_loss)


def new_trainer(config: LanguageTrialConfig) -> Trainer:
    return Trainer(config, tiny.corpus(), Runtime())


@functools.cache
def alone(config: LanguageTrialConfig) -> dict[str, Tensor]:
    """What the next step depends on, after all steps without mates."""
    trainer = new_trainer(config)
    for _ in range(STEPS):
        one_step(trainer)
    return state_of(trainer)


def state_of(trainer: Trainer) -> dict[str, Tensor]:
    losses = torch.tensor(
        [(epoch.train_loss, epoch.valid_loss) for epoch in trainer.progress.epochs]
    )
    return {name: tensor.clone() for name, tensor in trainer.snapshot()[0].items()} | {
        "losses": losses
    }


def restored(trainer: Trainer) -> Trainer:
    fresh = new_trainer(trainer.config)
    tensors, state = trainer.snapshot()
    fresh.restore({name: tensor.detach().clone() for name, tensor in tensors.items()}, state)
    return fresh


def train_together(
    configs: Sequence[LanguageTrialConfig], plans: Sequence[list[Phase]]
) -> list[Trainer]:
    """Every trial through its phases; those that are in the stack at a time make their steps as
    one."""
    trainers = [new_trainer(config) for config in configs]
    timelines = [[(phase, at) for phase in plan for at in range(phase.steps)] for plan in plans]
    stack, members = None, list[Trainer]()
    for now in zip(*timelines, strict=True):
        for index, (phase, at) in enumerate(now):
            if at == 0 and phase.restored:
                trainers[index] = restored(trainers[index])
        together = [
            trainer for trainer, (phase, _) in zip(trainers, now, strict=True) if phase.stacked
        ]
        if together and together != members:
            stack, members = Stack(together), together
        for trainer in trainers:
            if trainer not in together:
                one_step(trainer)
        if together:
            assert stack is not None
            stack.step()
            ending = [trainer for trainer in stack.trainers if trainer.ends_epoch]
            losses = dict(zip(ending, valid_losses(ending), strict=True)) if ending else {}
            for trainer in together:
                ended(trainer, losses.get(trainer))
    return trainers


@pytest.mark.parametrize("kind", ["sgd", "adam", "adamw"])
@settings(max_examples=3, deadline=None, phases=[HypothesisPhase.generate])
@given(data=st.data())
def test_steps_in_a_stack_are_those_alone(kind: str, data: st.DataObject) -> None:
    """Through every change of mates, in whatever order, with checkpoints on the way, in the stack
    and out of it; often of one seed and one model, so that draws are shared."""
    configs = data.draw(mates(kind))
    assert len({stack_key(config) for config in configs}) == 1
    if data.draw(st.booleans()):
        configs = [
            config.model_copy(update={"model": configs[0].model, "seed": configs[0].seed})
            for config in configs
        ]
    plans = [data.draw(phases()) for _ in configs]
    for trainer in train_together(configs, plans):
        assert_as_alone(trainer)


@pytest.mark.parametrize("kind", ["sgd", "adam", "adamw"])
def test_steps_with_every_dropout_are_those_alone(kind: str) -> None:
    """Different seeds, rates, decays and windows, and both kinds of averaging, which begin on the
    way."""
    configs: list[LanguageTrialConfig] = []
    for number, layer in enumerate((LAYERS[0], LAYERS[2], LAYERS[6], LAYERS[9]), 1):
        common: dict[str, Any] = {"output_layer": layer, "epoch_tokens": 400 * number}
        config: LanguageTrialConfig
        if kind == "adamw":
            config = tiny_transformer.trial(
                **common,
                model={"dropout": 0.1 * number},
                learning_rate=0.02 / number,
                weight_decay=0.1 * number,
                gradient_clip_norm=0.5 * number,
                epochs=20 * number,
            )
        else:
            averaging = EtAsgdConfig(switch_epoch=1), NtAsgdConfig(nonmonotone_interval=1)
            config = tiny.trial(
                **common,
                averaging=averaging[number % 2],
                optimizer=kind,
                bptt=8 + 3 * number,
                learning_rate=(5.0 if kind == "sgd" else 0.003) / number,
                weight_decay=1e-4 * number,
                epochs=100,
            )
            dropped = dict.fromkeys((*DROPOUTS, "embedding_noise"), 0.1 * number)
            config = config.model_copy(update={"model": config.model.model_copy(update=dropped)})
        configs.append(config.model_copy(update={"seed": number}))
    plan = [Phase(STEPS, stacked=True, restored=False)]
    trainers = train_together(configs, [plan] * len(configs))
    assert kind == "adamw" or any(trainer.average is not None for trainer in trainers)
    for trainer in trainers:
        assert trainer.progress.epochs
        assert_as_alone(trainer)


def assert_as_alone(trainer: Trainer) -> None:
    expected, result = alone(trainer.config), state_of(trainer)
    assert result.keys() == expected.keys()
    for name, tensor in expected.items():
        if name == "random.global":  # for output layers of a user's own, which no stack has
            continue
        if name.startswith("random."):
            assert torch.equal(result[name], tensor), name
        else:
            torch.testing.assert_close(result[name], tensor, rtol=1e-9, atol=1e-9, msg=name)
