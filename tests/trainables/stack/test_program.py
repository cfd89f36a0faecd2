"""The steps of a stack as graphs: the same done again on the same tensors, without its Python; and
shared draws."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.support import tiny_trial as tiny
from tests.support.cpu_graphs import DRAWS, CpuGraphs, NotForGraphsError
from tests.support.device_trials import transformer_on
from trainables.config import (
    EtAsgdConfig,
    GssConfig,
    LmsPlifConfig,
    MocConfig,
    MosConfig,
    MosPlifConfig,
    OutputLayerConfig,
    SoftcapConfig,
    SoftmaxConfig,
    TrialConfig,
)
from trainables.runtime import Runtime
from trainables.stack import Stack, draws_of, masks, program
from trainables.training import Trainer

LAYERS: tuple[OutputLayerConfig, ...] = (
    SoftmaxConfig(),
    GssConfig(c=-1.5, k=2.5),
    SoftcapConfig(cap=15.0),
    LmsPlifConfig(knots=31, limit=3.0),
    MosConfig(mixtures=2, latent_dropout=0.3),
    MocConfig(mixtures=2, latent_dropout=0.0),
    MosPlifConfig(knots=20, mixtures=2),
)


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[CpuGraphs]:
    """Those that stacks take from now on."""
    made = list[CpuGraphs]()

    def graphs_on(_device: torch.device) -> CpuGraphs:
        made.append(CpuGraphs())
        return made[-1]

    monkeypatch.setattr(program, "graphs_on", graphs_on)
    return made


def trainers_of(optimizer: str) -> list[Trainer]:
    """One of every layer; some average from their first epoch on, which end at different steps.
    With "adamw", of Transformers."""
    if optimizer == "adamw":
        return [
            transformer_on(
                "cpu", layer, seed=number + 1, epoch_tokens=700 + 200 * number, weight_decay=0.1
            )
            for number, layer in enumerate(LAYERS)
        ]
    rate = 5.0 if optimizer == "sgd" else 0.003
    configs = [
        tiny.trial(
            output_layer=layer,
            averaging=EtAsgdConfig(switch_epoch=1 if number < 2 else 9),
            optimizer=optimizer,
            learning_rate=rate,
            epoch_tokens=700 + 200 * number,
            bptt=12 - number,
            weight_decay=1e-3,
            warm_up_tokens=500,
        ).model_copy(update={"seed": number + 1})
        for number, layer in enumerate(LAYERS)
    ]
    return [Trainer(config, tiny.corpus(), Runtime()) for config in configs]


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
        members = [trainer for trainer in members if trainer is not leaving] + (
            [joining] if joining else []
        )
    return list(trainers)


def numbers_of(trainer: Trainer) -> dict[str, Tensor]:
    return {
        name: tensor
        for name, tensor in trainer.snapshot()[0].items()
        if "random.global" not in name
    }


@pytest.mark.parametrize(("optimizer", "captures"), [("sgd", 8), ("adam", 8), ("adamw", 2)])
def test_replayed_steps_are_the_steps_to_the_last_bit(
    optimizer: str, captures: int, graphs: list[CpuGraphs], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over windows of many lengths, of which Transformers have one, the start of averages, the end
    of the text, and changes of mates."""
    replayed = with_changes_of_mates(trainers_of(optimizer))
    assert sum(made.replays for made in graphs) > 20
    assert sum(made.captures for made in graphs) > captures
    monkeypatch.undo()
    for trainer, expected in zip(
        replayed, with_changes_of_mates(trainers_of(optimizer)), strict=True
    ):
        result = numbers_of(trainer)
        assert any(name.startswith("average.") for name in result) == (expected.average is not None)
        for name, tensor in numbers_of(expected).items():
            assert torch.equal(result[name], tensor), name


def test_a_length_is_captured_when_it_comes_again_and_no_more_are_than_there_is_room_for(
    graphs: list[CpuGraphs], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "MOST_GRAPHS", 2)
    done = list[str]()
    replays = program._Replays(torch.device("cpu"))
    for key in (12, 13, 12, 12, 14, 13, 14, 14, 13):
        replays.run(key, lambda key=key: done.append(f"{key}"))  # type: ignore[misc]
    [made] = graphs
    assert (made.as_it_stands, made.captures, made.replays) == (5, 2, 4)
    assert done == ["12", "13", "12", "14", "13", "14", "14"]


def test_without_memory_for_one_more_graph_that_of_the_others_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, done = list[weakref.ref[CpuGraphs]](), list[int]()

    class OneGraph(CpuGraphs):
        def captured(self, work: Callable[[], None]) -> Callable[[], None]:
            if self.captures:
                raise torch.OutOfMemoryError
            return super().captured(work)

    def graphs_on(_device: torch.device) -> CpuGraphs:
        graphs = OneGraph()
        made.append(weakref.ref(graphs))
        return graphs

    monkeypatch.setattr(program, "graphs_on", graphs_on)
    replays = program._Replays(torch.device("cpu"))
    for key in (12, 12, 13, 13, 12, 13):
        replays.run(key, lambda key=key: done.append(key))  # type: ignore[misc]
    assert done == [12, 12, 13, 13, 12, 13]
    first, second = made
    graphs = second()
    assert first() is None and graphs is not None
    assert (graphs.as_it_stands, graphs.captures) == (3, 0)


@pytest.mark.parametrize("share", [0.1, 0.995])
def test_without_memory_for_graphs_steps_are_done_as_they_stand(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A capture ends in the forward pass, or in the update when weights have moved and gradients
    wait to be used."""

    def after_twelve_steps(made: CpuGraphs) -> list[Trainer]:
        monkeypatch.setattr(program, "graphs_on", lambda _device: made)
        trainers = trainers_of("sgd")
        stack = Stack(trainers)
        for _ in range(12):
            stack.step()
        return trainers

    enough = CpuGraphs()
    expected = after_twelve_steps(enough)
    assert enough.replays > 0
    scarce = CpuGraphs(share * enough.operations[0])
    for trainer, alike in zip(after_twelve_steps(scarce), expected, strict=True):
        result = numbers_of(trainer)
        for name, tensor in numbers_of(alike).items():
            assert torch.equal(result[name], tensor), name
    assert (scarce.as_it_stands, scarce.captures, scarce.replays) == (12, 1, 0)


@pytest.mark.parametrize(
    "work",
    [lambda x: x.sum().item(), lambda x: x + torch.tensor([1.0]), lambda x: x.bernoulli_(0.5)],
)
def test_what_no_graph_can_do_is_refused(work: Callable[[Tensor], object]) -> None:
    graph = CpuGraphs()
    for way in (graph.run, graph.captured):
        with pytest.raises(NotForGraphsError):
            way(lambda: (work(torch.ones(3)), None)[1])


def places(stack: Stack) -> dict[str, int]:
    """Where everything lies that a graph would read or write."""
    owned = stack._program
    tensors = {
        f"{index}.{name}": t
        for index, tr in enumerate(stack.trainers)
        for name, t in numbers_of(tr).items()
    }
    lasting = {
        name: t
        for name, t in tensors.items()
        if not any(part in name for part in ("random", "state", "kept"))
    }
    lasting |= {
        f"{i}.state.{n}": t
        for i, tr in enumerate(stack.trainers)
        for n, hc in enumerate(tr.state)
        for t in hc
    }
    lasting |= {"numbers": owned._numbers, **owned._draws._drawn}
    return {name: tensor.data_ptr() for name, tensor in lasting.items()}


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_tensors_stay_where_they_are_whatever_the_lengths(optimizer: str) -> None:
    trainers = trainers_of(optimizer)
    for trainer in trainers[:2]:
        trainer.step()
        trainer.end_epoch()
    stack = Stack(trainers)
    stack.step()
    before, lengths = places(stack), set[int]()
    assert any("average" in name for name in before)
    for _ in range(30):
        starts = [trainer.progress.position for trainer in stack.trainers]
        stack.step()
        ends = [trainer.progress.position for trainer in stack.trainers]
        lengths.add(max(end - start for start, end in zip(starts, ends, strict=True)))
        assert places(stack) == before
    assert len(lengths) > 5


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


@pytest.fixture
def in_float64() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def after(configs: Sequence[TrialConfig], *, stacked: bool) -> tuple[list[Trainer], int]:
    """The trainers after twelve steps, and how many draws the last one took of all of them; draws
    of windows, which are of the host, are not counted."""
    trainers = [Trainer(config, tiny.corpus(), Runtime()) for config in configs]
    stack = Stack(trainers) if stacked else None
    for _ in range(12):
        with Drawing() as drawing:
            if stack is not None:
                stack.step()
            else:
                for trainer in trainers:
                    trainer.step()
    return trainers, drawing.draws - 2 * len(trainers)


def noisy(config: TrialConfig, deviation: float = 0.1, seed: int = 7) -> TrialConfig:
    model = config.model.model_copy(update={"embedding_noise": deviation})
    return config.model_copy(update={"model": model, "seed": seed})


def check_like_alone(configs: Sequence[TrialConfig]) -> tuple[int, int]:
    """That a stack's trials are as alone; returns the draws of a step, alone and in the stack."""
    alone, of_alone = after(configs, stacked=False)
    together, of_together = after(configs, stacked=True)
    for expected, trainer in zip(alone, together, strict=True):
        result = numbers_of(trainer)
        for name, tensor in numbers_of(expected).items():
            if name.startswith("random."):
                assert torch.equal(result[name], tensor), name
            else:
                torch.testing.assert_close(result[name], tensor, rtol=1e-9, atol=1e-9, msg=name)
    return of_alone, of_together


@pytest.mark.usefixtures("in_float64")
def test_sixteen_models_of_one_seed_draw_as_one() -> None:
    configs = [
        noisy(tiny.trial(output_layer=GssConfig(c=c, k=k)))
        for c in (-3.0, -1.0, 0.0, 2.0)
        for k in (0.5, 1.5, 2.0, 4.0)
    ]
    of_alone, of_together = check_like_alone(configs)
    assert of_alone == 16 * of_together
    assert (
        of_together == 9
    )  # of words, noise, embedded words, and weights and outputs of three layers


@pytest.mark.usefixtures("in_float64")
def test_models_that_differ_in_what_they_draw_do_not_share_it() -> None:
    """By dropout, by the width of a mixture, by the length of windows where there is noise, by
    seed; the first two, which differ in the length of windows alone, and the next two, in nothing,
    share."""
    mixture = MosConfig(mixtures=2, latent_dropout=0.3)
    plain = noisy(tiny.trial(), 0.0)
    configs = [
        plain,
        noisy(tiny.trial(bptt=9), 0.0),
        noisy(tiny.trial()),
        noisy(tiny.trial(output_layer=SoftmaxConfig())),
        noisy(tiny.trial(bptt=9)),
        plain.model_copy(update={"model": plain.model.model_copy(update={"dropout_hidden": 0.4})}),
        plain.model_copy(update={"seed": 8}),
        noisy(tiny.trial(output_layer=mixture), 0.0),
        noisy(tiny.trial(output_layer=MosConfig(mixtures=3, latent_dropout=0.3)), 0.0),
    ]
    of_alone, of_together = check_like_alone(configs)
    assert of_alone - of_together == 8 + 9


@pytest.mark.usefixtures("in_float64")
def test_models_that_shared_their_draws_part_for_good() -> None:
    """One of them makes a step alone, and comes back."""
    configs = [
        noisy(tiny.trial(output_layer=layer))
        for layer in (SoftmaxConfig(), GssConfig(c=1.0, k=2.0))
    ] * 2
    together = [Trainer(config, tiny.corpus(), Runtime()) for config in configs]
    stack, draws = Stack(together), []
    for number in range(6):
        if number == 3:
            together[0].step()
        with Drawing() as drawing:
            stack.step()
        draws.append(drawing.draws - 2 * len(configs))
    assert draws == [9, 9, 9, 18, 18, 18]
    for trainer in together:
        expected = Trainer(trainer.config, tiny.corpus(), Runtime())
        for _ in range(trainer.progress.step):
            expected.step()
        assert torch.equal(trainer.masks.get_state(), expected.masks.get_state())
        for name, parameter in expected.model.named_parameters():
            torch.testing.assert_close(
                trainer.model.get_parameter(name), parameter, rtol=1e-9, atol=1e-9, msg=name
            )


def test_models_that_have_parted_stay_apart_where_their_generators_meet_again() -> None:
    """As those of a GPU do, whose states are alike after noise for windows of other lengths."""
    generators = [torch.Generator().manual_seed(7) for _ in range(2)]
    of_model = draws_of(noisy(tiny.trial()), tiny.VOCABULARY, 9)
    draws = masks.StackedDraws([of_model] * 2, generators, torch.zeros(2, tiny.VOCABULARY, 4), 9)
    moved = []
    for lengths in ((9, 9), (9, 8), (9, 9), (8, 8), (9, 8)):
        generators[1].set_state(generators[0].get_state())
        moved.append(draws.draw(lengths))
    assert moved == [True, True, False, False, False]
