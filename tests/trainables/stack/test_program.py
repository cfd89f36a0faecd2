"""The steps of a stack as graphs: the same done again on the same tensors, without its Python; and
shared draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.support import tiny_transformer
from tests.support import tiny_trial as tiny
from tests.support.cpu_graphs import DRAWS, CpuGraphs
from tests.support.device_trials import STACKED
from trainables.config import (
    EtAsgdConfig,
    GssConfig,
    LanguageTrialConfig,
    MosConfig,
    SoftmaxConfig,
    TrialConfig,
)
from trainables.runtime import Runtime
from trainables.stack import Stack, program
from trainables.training import Trainer


def trainers_of(optimizer: str, layers: int = len(STACKED)) -> list[Trainer]:
    """One of every layer; some average from their first epoch on, which end at different steps.
    With "adamw", of Transformers."""
    trainers = []
    for number, layer in enumerate(STACKED[:layers]):
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
    """Sixty steps, some of them without the first trainer and some with one that comes later."""
    *members, later = trainers
    for steps, leaving, joining in ((24, members[0], None), (12, None, later), (24, None, None)):
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


def numbers_of(trainer: Trainer) -> dict[str, Tensor]:
    tensors, _ = trainer.snapshot()
    return {name: tensor for name, tensor in tensors.items() if "random.global" not in name}


def assert_equal(trainers: Sequence[Trainer], others: Sequence[Trainer]) -> None:
    for trainer, expected in zip(trainers, others, strict=True):
        result = numbers_of(trainer)
        assert any(name.startswith("average.") for name in result) == (expected.average is not None)
        for name, tensor in numbers_of(expected).items():
            assert torch.equal(result[name], tensor), name


@pytest.mark.parametrize(("optimizer", "captures"), [("sgd", 8), ("adam", 8), ("adamw", 2)])
def test_replayed_steps_are_the_steps(
    optimizer: str, captures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the last bit, over windows of many lengths, of which Transformers have one, the start of
    averages, the end of the text, and changes of mates."""
    graphs = CpuGraphs()
    monkeypatch.setattr(program, "graphs_on", lambda _device: graphs)
    replayed = with_changes_of_mates(trainers_of(optimizer))
    assert graphs.replays > 20 and graphs.captures > captures
    monkeypatch.undo()
    assert_equal(replayed, with_changes_of_mates(trainers_of(optimizer)))


def test_graphs_are_captured_at_the_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as there is room for them."""
    graphs, done = CpuGraphs(), list[int]()
    monkeypatch.setattr(program, "graphs_on", lambda _device: graphs)
    monkeypatch.setattr(program, "MOST_GRAPHS", 2)
    replays = program._Replays(torch.device("cpu"))
    for key in (12, 13, 12, 12, 14, 13, 14, 14, 13):
        replays.run(key, lambda key=key: done.append(key))  # type: ignore[misc]
    assert (graphs.as_it_stands, graphs.captures, graphs.replays) == (5, 2, 4)
    assert done == [12, 13, 12, 14, 13, 14, 14]


class Drawing(TorchDispatchMode):
    """Counts what is drawn inside."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.draws = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        self.draws += func.overloadpacket.__name__ in DRAWS
        return func(*args, **(kwargs or {}))


def noisy(config: TrialConfig, deviation: float = 0.1) -> TrialConfig:
    return config.with_values({"model.embedding_noise": deviation})


def draws_of_steps(trainers: Sequence[Trainer], steps: int) -> int:
    """How many draws the last of these steps of a stack takes; those of windows, which are of the
    host, are not counted."""
    stack = Stack(trainers)
    for _ in range(steps):
        with Drawing() as drawing:
            stack.step()
    return drawing.draws - 2 * len(trainers)


def assert_as_alone(trainers: Sequence[Trainer]) -> None:
    for trainer in trainers:
        alone = Trainer(trainer.config, tiny.corpus(), Runtime())
        for _ in range(trainer.progress.step):
            alone.step()
        assert torch.equal(trainer.masks.get_state(), alone.masks.get_state())
        for name, parameter in alone.model.named_parameters():
            torch.testing.assert_close(
                trainer.model.get_parameter(name), parameter, rtol=1e-9, atol=1e-9, msg=name
            )


@pytest.mark.usefixtures("in_float64")
def test_equal_draws_are_shared() -> None:
    """The first two models differ in the length of windows alone, and the next two in nothing that
    is drawn: these share. Others differ by windows where there is noise, by dropout, seed and the
    width of a mixture."""
    plain = noisy(tiny.trial(), 0.0)
    configs = [
        plain,
        noisy(tiny.trial(bptt=9), 0.0),
        noisy(tiny.trial()),
        noisy(tiny.trial(output_layer=SoftmaxConfig())),
        noisy(tiny.trial(bptt=9)),
        plain.with_values({"model.dropout_hidden": 0.4}),
        plain.with_values({"seed": 8}),
    ]
    for mixtures in (2, 3):
        layer = MosConfig(mixtures=mixtures, latent_dropout=0.3)
        configs.append(plain.model_copy(update={"output_layer": layer}))
    trainers = [Trainer(config, tiny.corpus(), Runtime()) for config in configs]
    # Of words, embedded words, and weights and outputs of three layers; noise; latent vectors.
    assert draws_of_steps(trainers, 8) == 7 * 8 + 2 + 2
    assert_as_alone(trainers)


@pytest.mark.usefixtures("in_float64")
def test_parted_models_stay_apart() -> None:
    """One of them makes a step alone, and comes back."""
    layers = (SoftmaxConfig(), GssConfig(c=1.0, k=2.0))
    configs = [noisy(tiny.trial(output_layer=layer)) for layer in layers]
    trainers = [Trainer(config, tiny.corpus(), Runtime()) for config in configs]
    assert draws_of_steps(trainers, 3) == 9
    trainers[0].step()
    assert draws_of_steps(trainers, 3) == 18
    assert_as_alone(trainers)
