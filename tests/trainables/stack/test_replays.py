from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support import tiny_transformer
from tests.support import tiny_trial as tiny
from tests.support.cpu_graphs import CpuGraphs
from tests.support.device_trials import STACKED, assert_same_bits
from trainables.config import (
    EtAsgdConfig,
    LanguageTrialConfig,
)
from trainables.runtime import Runtime
from trainables.stack import Stack
from trainables.training import Trainer


def trainers_of(optimizer: str) -> list[Trainer]:
    """Return several trainers for one optimizer.

    "sgd" gives LSTMs with every layer, "adam" LSTMs with four layers, "adamw" Transformers. Two
    LSTMs average their weights from the first epoch, and epochs end at different steps.
    """
    trainers = []
    for number, layer in enumerate(STACKED if optimizer == "sgd" else STACKED[:4]):
        tokens = 700 + 200 * number
        config: LanguageTrialConfig
        if optimizer == "adamw":
            config = tiny_transformer.trial(
                output_layer=layer, epoch_tokens=tokens, weight_decay=0.1
            )
        else:
            config = tiny.trial(
                output_layer=layer,
                averaging=EtAsgdConfig(switch_epoch=1 if number < 2 else 9),
                optimizer=optimizer,
                learning_rate=5.0 if optimizer == "sgd" else 0.003,
                epoch_tokens=tokens,
                bptt=14 - number,
                weight_decay=1e-3,
                warm_up_tokens=500,
            )
        config = config.model_copy(update={"seed": number + 1})
        trainers.append(Trainer(config, tiny.corpus(), Runtime()))
    return trainers


def with_changes_of_mates(trainers: Sequence[Trainer]) -> list[Trainer]:
    *members, later = trainers
    for steps, leaving, joining in ((20, members[0], None), (10, None, later), (20, None, None)):
        stack = Stack(members)
        for _ in range(steps):
            stack.step()
            for trainer in members:
                if trainer.ends_epoch:
                    trainer.end_epoch()
        if leaving is not None:
            stack.leave(leaving)
            members.remove(leaving)
        if joining is not None:
            members.append(joining)
    return list(trainers)


@pytest.mark.parametrize(("optimizer", "captures"), [("sgd", 8), ("adam", 8), ("adamw", 2)])
def test_replayed_steps_equal_steps(
    optimizer: str, captures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = CpuGraphs()
    monkeypatch.setattr("trainables.stack.stack.graphs_on", lambda _device: graphs)
    replayed = with_changes_of_mates(trainers_of(optimizer))
    assert graphs.replays > 20 and graphs.captures > captures
    monkeypatch.undo()
    for trainer, expected in zip(
        replayed, with_changes_of_mates(trainers_of(optimizer)), strict=True
    ):
        assert_same_bits(trainer, expected)
