"""Compare stacked trials in float64 with the same trials trained alone, while trials join and
leave."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.support import tiny_transformer
from tests.support import tiny_trial as tiny
from tests.support.output_layer_formulas import EVERY_LAYER
from trainables.config import (
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
)
from trainables.runtime import Runtime
from trainables.stack import Stack, stack_key
from trainables.stack.validation import valid_losses
from trainables.training import Trainer

pytestmark = pytest.mark.usefixtures("in_float64")

STEPS = 40
# For each trial: its steps in the stack, and the steps before which it is restored.
PLANS = (
    (range(STEPS), ()),
    (range(15, STEPS), (15,)),
    ((*range(12), *range(22, STEPS)), (22,)),
    (range(25), (10, 25)),
)
LAYERS: tuple[tuple[OutputLayerConfig, ...], ...] = (
    (
        SoftmaxConfig(),
        GssConfig(c=1.0, k=0.5),
        MosConfig(mixtures=2, latent_dropout=0.3),
        LmsPlifConfig(knots=31, limit=3.0),
    ),
    (
        SigSoftmaxConfig(),
        SoftcapConfig(cap=5.0),
        MocConfig(mixtures=3),
        LmsPlifFrozenConfig(knots=31, limit=3.0),
    ),
    (
        GssConfig(c=-1.5, k=2.5),
        SoftcapConfig(form="sigmoid", cap=23.0),
        MosConfig(mixtures=2, latent_dropout=0.0),
        MosPlifConfig(knots=20, mixtures=2),
    ),
)
HEADS: tuple[dict[str, Any], ...] = ({}, {"head": "untied"}, {"head": "untied", "head_rank": 3})
DROPOUTS = ("embedding_matrix", "embedding", "hidden", "output")
RATES = {"sgd": 5.0, "adam": 0.003, "adamw": 0.02}


def trial_of(optimizer: str, group: int, number: int) -> LanguageTrialConfig:
    """Return a trial that differs from the others in every setting that may differ in a stack.

    Only trials 3 and 4 share seed and model.
    """
    seed = min(number, 3)
    training: dict[str, Any] = {
        "output_layer": LAYERS[group][number - 1],
        "learning_rate": RATES[optimizer] / number,
        "gradient_clip_norm": 0.25 * number,
        "weight_decay": 1e-3 * (number - 1),
        "warm_up_tokens": 500 * (number % 2),
        "epoch_tokens": None if number == 4 else 400 * number,
        "epochs": 20 * number,
    }
    config: LanguageTrialConfig
    if optimizer == "adamw":
        model = {"dropout": 0.1 * seed, **HEADS[group]}
        config = tiny_transformer.trial(**training, model=model, final_rate_share=0.1 * number)
    else:
        dropped = {f"model.dropout_{name}": 0.1 * seed for name in DROPOUTS}
        averaging = EtAsgdConfig(switch_epoch=1), NtAsgdConfig(nonmonotone_interval=1)
        config = tiny.trial(
            **training,
            optimizer=optimizer,
            averaging=averaging[number % 2],
            head_rank=HEADS[group].get("head_rank"),
            bptt=8 + 3 * number,
            activation_regularisation=number - 1.0,
            temporal_activation_regularisation=number % 2,
        ).with_values(
            dropped | {"model.dropconnect": 0.1 * seed, "model.embedding_noise": 0.1 * (seed - 1)}
        )
    return config.model_copy(update={"seed": seed})


def new_trainer(config: LanguageTrialConfig) -> Trainer:
    return Trainer(config, tiny.corpus(), Runtime())


def restored(trainer: Trainer) -> Trainer:
    fresh = new_trainer(trainer.config)
    tensors, state = trainer.snapshot()
    fresh.restore({name: tensor.detach().clone() for name, tensor in tensors.items()}, state)
    return fresh


def state_of(trainer: Trainer) -> dict[str, Tensor]:
    epochs = trainer.progress.epochs
    losses = torch.tensor([(epoch.train_loss, epoch.valid_loss) for epoch in epochs])
    return {**trainer.snapshot()[0], "losses": losses}


def test_every_stack_layer_is_compared() -> None:
    stacked = {type(layer) for layer in EVERY_LAYER if stack_key(tiny.trial(output_layer=layer))}
    assert stacked == {type(layer) for group in LAYERS for layer in group}


@pytest.mark.parametrize(
    ("optimizer", "group"),
    [*(("sgd", group) for group in range(len(LAYERS))), ("adam", 1), ("adamw", 1), ("adamw", 2)],
)
def test_stack_steps_equal_single_steps(optimizer: str, group: int) -> None:
    trainers = [new_trainer(trial_of(optimizer, group, number)) for number in range(1, 5)]
    assert len({stack_key(trainer.config) for trainer in trainers}) == 1
    members = list[Trainer]()
    for step in range(STEPS):
        for index, (_, checkpoints) in enumerate(PLANS):
            if step in checkpoints:
                trainers[index] = restored(trainers[index])
        together = [
            trainer
            for trainer, (stacked, _) in zip(trainers, PLANS, strict=True)
            if step in stacked
        ]
        if together != members:
            stack, members = Stack(together), together
        for trainer in set(trainers) - set(together):
            trainer.step()
        stack.step()
        ending = [trainer for trainer in stack.trainers if trainer.ends_epoch]
        losses = dict(zip(ending, valid_losses(ending), strict=True)) if ending else {}
        for trainer in trainers:
            if trainer.ends_epoch:
                trainer.end_epoch(losses.get(trainer))
    assert optimizer == "adamw" or any(trainer.average is not None for trainer in trainers)
    for trainer in trainers:
        assert_as_alone(trainer)


def assert_as_alone(trainer: Trainer) -> None:
    alone = new_trainer(trainer.config)
    for _ in range(STEPS):
        alone.step()
        if alone.ends_epoch:
            alone.end_epoch()
    expected, result = state_of(alone), state_of(trainer)
    assert result.keys() == expected.keys()
    for name, tensor in expected.items():
        if name == "random.global":  # for a user's own output layers, which no stack has
            continue
        if name.startswith("random."):
            assert torch.equal(result[name], tensor), name
        else:
            torch.testing.assert_close(result[name], tensor, rtol=1e-9, atol=1e-9, msg=name)
