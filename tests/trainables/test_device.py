"""The ways of a GPU, on a machine without one: by shapes and dtypes on torch's device "meta", which
has no numbers to read back, so that whatever waits for one fails. With a GPU, tests/gpu has the
numbers.

Fake tensors of torch's that name a CUDA device would do as well, but not here: in a build of torch
for CPUs, the first one that wants a gradient ends the process ("PyTorch is not linked with support
for cuda devices", seen with 2.13)."""

from __future__ import annotations

import gc
import inspect
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.support import output_layer_formulas as formulas
from tests.support import tiny_transformer
from tests.support import tiny_trial as tiny
from tests.support.device_trials import LAYERS, STACKED
from tests.support.products import Asked
from trainables import device
from trainables.config import MonotoneNnConfig, OutputLayerConfig, chunk_rows
from trainables.language_model import transformer
from trainables.output_layers import monotone_nn
from trainables.runtime import Runtime
from trainables.stack import Stack
from trainables.training import Trainer, loop

ROOT = Path(__file__).parents[2]
FACTORS = {"float32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16}


@pytest.fixture
def on_meta(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Trainer]:
    """Trainers of the tiny trial on the device that has no numbers; it has no generators of its own
    either."""
    monkeypatch.setattr(
        loop, "generator", lambda seed, _device: torch.Generator().manual_seed(seed)
    )

    def trainer(layer: OutputLayerConfig, precision: str = "float32", seed: int = 7) -> Trainer:
        config = tiny.trial(output_layer=layer, precision=precision).model_copy(
            update={"seed": seed}
        )
        return Trainer(config, tiny.corpus(), Runtime(device="meta"))

    return trainer


@pytest.mark.parametrize("precision", FACTORS)
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_every_product_of_a_step_is_in_its_precision_and_nothing_is_read_back(
    on_meta: Callable[..., Trainer], layer: OutputLayerConfig, precision: str
) -> None:
    trainer = on_meta(layer, precision)
    with Asked() as asked:
        trainer.step()
    assert asked.product_dtypes == {FACTORS[precision]}
    parameters = dict(trainer.model.named_parameters())
    assert {tensor.dtype for pair in trainer.state for tensor in pair} == {torch.float32}
    assert {
        tensor.dtype for p in parameters.values() for tensor in (p, p.grad) if tensor is not None
    } == {torch.float32}
    with pytest.raises(RuntimeError, match="meta"):  # the end of an epoch does read
        trainer.end_epoch()


@pytest.mark.parametrize("precision", FACTORS)
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_every_product_of_a_transformer_is_in_its_precision_and_nothing_is_read_back(
    monkeypatch: pytest.MonkeyPatch, layer: OutputLayerConfig, precision: str
) -> None:
    """Forward and backward: Adam's kernel has no meta device, nor has that of attention, whose
    inputs are looked at."""
    attended: set[torch.dtype] = set()

    def attention(query: Tensor, key: Tensor, value: Tensor, *, is_causal: bool) -> Tensor:
        assert is_causal
        attended.update(tensor.dtype for tensor in (query, key, value))
        return query + key + value

    monkeypatch.setattr(transformer, "scaled_dot_product_attention", attention)
    monkeypatch.setattr(
        loop, "generator", lambda seed, _device: torch.Generator().manual_seed(seed)
    )
    config = tiny_transformer.trial(output_layer=layer, precision=precision)
    trainer = Trainer(config, tiny.corpus(), Runtime(device="meta"))
    with Asked() as asked:
        trainer._forward(trainer.next_window())[1].backward()
    assert asked.product_dtypes == attended == {FACTORS[precision]}
    dtypes = {
        tensor.dtype
        for p in trainer.model.parameters()
        for tensor in (p, p.grad)
        if tensor is not None
    }
    assert dtypes == {torch.float32}


@pytest.mark.parametrize("layer", STACKED, ids=lambda layer: layer.name)
def test_a_step_of_a_stack_reads_nothing_back(
    on_meta: Callable[..., Trainer], layer: OutputLayerConfig
) -> None:
    stack = Stack([on_meta(layer, seed=seed) for seed in (1, 2, 3)])
    for _ in range(2):
        with Asked() as asked:
            stack.step()
        assert asked.reads == 2 * 3, "of what the windows drew, on the CPU"


def test_a_step_of_adam_reads_only_what_its_window_drew() -> None:
    """Adam's kernel has no meta device; the window's draws are on the CPU."""
    trainer = Trainer(tiny.trial(optimizer="adam"), tiny.corpus(), Runtime())
    trainer.step()
    with Asked() as asked:
        trainer.step()
    assert asked.reads == 2


def test_on_a_cpu_an_lstm_in_bf16_stays_in_float32() -> None:
    trainer = Trainer(tiny.trial(precision="bf16"), tiny.corpus(), Runtime())
    with Asked() as asked:
        trainer.step()
    assert asked.product_dtypes == {torch.float32, torch.bfloat16}


def test_on_a_cpu_tf32_is_float32_and_another_trial() -> None:
    trainers = [
        Trainer(tiny.trial(precision=name), tiny.corpus(), Runtime())
        for name in ("float32", "tf32")
    ]
    for trainer in trainers:
        trainer.step()
        trainer.step()
    exact, rounded = (trainer.snapshot()[0] for trainer in trainers)
    assert all(torch.equal(tensor, rounded[name]) for name, tensor in exact.items())
    assert trainers[0].config.trial_id != trainers[1].config.trial_id


def flags() -> tuple[str, str, str, bool]:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    reduced = matmul.allow_bf16_reduced_precision_reduction
    return matmul.fp32_precision, cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision, reduced  # type: ignore[attr-defined]


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
def test_torchs_flags_are_set_for_a_gpu_and_put_back_also_after_an_error(
    precision: device.Precision,
) -> None:
    before = flags()
    with pytest.raises(KeyError), device.products_in(precision, "cuda"):
        inside = (*["tf32" if precision == "tf32" else "ieee"] * 3, False)
        assert flags() == inside
        with device.products_in("float32", "cuda"):
            assert flags() == ("ieee", "ieee", "ieee", False)
        assert flags() == inside
        raise KeyError
    assert flags() == before
    with device.products_in(precision, "cpu"):
        assert flags() == before


SET_BY_A_USER = """
import torch

from trainables.device import products_in

matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
if {old}:
    matmul.allow_tf32 = cudnn.allow_tf32 = True
else:
    matmul.fp32_precision = "tf32"
for precision, wanted in (("float32", "ieee"), ("tf32", "tf32")):
    with products_in(precision, "cuda"):
        found = [owner.fp32_precision for owner in (matmul, cudnn.conv, cudnn.rnn)]
        assert found == [wanted] * 3, (precision, found)
    assert matmul.fp32_precision == "tf32"
assert not {old} or matmul.allow_tf32
"""


@pytest.mark.parametrize("old", [False, True])
def test_a_users_code_may_set_torchs_flags(old: bool) -> None:
    """Torch refuses to read old ones that differ from the new. In a process of its own, as they
    stay set."""
    subprocess.run(
        [sys.executable, "-c", SET_BY_A_USER.replace("{old}", str(old))], cwd=ROOT, check=True
    )


def test_whatever_is_no_cpu_takes_chunks_of_a_gpus_size() -> None:
    on_gpu, on_meta, on_cpu = (chunk_rows(10_000, 400, 2, kind) for kind in ("cuda", "meta", "cpu"))
    assert on_gpu == on_meta > on_cpu


def test_validation_inside_a_trial_in_tf32_is_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []
    products_in = device.products_in

    def listening(precision: device.Precision, where: str) -> object:
        asked.append((precision, where))
        return products_in(precision, where)

    monkeypatch.setattr(loop, "products_in", listening)
    trainer = Trainer(tiny.trial(precision="tf32"), tiny.corpus(), Runtime())
    trainer.step()
    trainer.end_epoch()
    assert asked == [("tf32", "cpu"), ("float32", "cpu")]


def test_a_gpus_own_generator_goes_with_the_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    states = [torch.tensor([1, 2, 3], dtype=torch.uint8)]
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda: states[-1])
    monkeypatch.setattr(torch.cuda, "set_rng_state", states.append)
    saved = device.global_random_states("cuda")
    first = torch.rand(3)
    device.set_global_random_states(saved, "cuda")
    assert torch.equal(torch.rand(3), first)
    assert states[1:] == [saved[device.GLOBAL_CUDA]]
    assert set(device.global_random_states("cpu")) == {device.GLOBAL}


def test_a_network_whose_weights_stay_on_the_gpu_is_the_same_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a GPU, with the tensors that take the place of floats there."""
    hidden, weight, targets = formulas.inputs(20, 4, 9)
    layer = formulas.layer_of(MonotoneNnConfig(units=5), 9, 4)

    def by_everything() -> list[Tensor]:
        inputs = [hidden.clone().requires_grad_(), weight.clone().requires_grad_()]
        loss = layer.loss(inputs[0].unsqueeze(1), inputs[1], targets)
        return [loss, *torch.autograd.grad(loss, [*inputs, *layer.parameters()])]

    with_floats = by_everything()
    monkeypatch.setattr(monotone_nn, "numbers", Tensor.unbind)
    for expected, value in zip(with_floats, by_everything(), strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-14)


def test_graphs_are_captured_in_one_pool_on_the_stream_where_the_work_was_done_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By what torch is asked, with the keywords that its context has."""
    asked = list[str]()
    signature = inspect.signature(torch.cuda.graph)

    class Stream:
        def __init__(self, name: str = "side") -> None:
            self.name = name

        def wait_stream(self, other: Stream) -> None:
            asked.append(f"{self.name} waits for {other.name}")

    class Graph:
        def replay(self) -> None:
            asked.append("replay")

    @contextmanager
    def on(stream: Stream) -> Iterator[None]:
        asked.append(f"on {stream.name}")
        yield
        asked.append("off")

    @contextmanager
    def capturing(*args: Any, **kwargs: Any) -> Iterator[None]:
        given = signature.bind(*args, **kwargs).arguments
        asked.append(f"capture in {given['pool']} on {given['stream'].name}")
        yield
        asked.append("captured")

    stand_ins = {"Stream": Stream, "CUDAGraph": Graph, "stream": on, "graph": capturing}
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: None, raising=False)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: Stream("main"))
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: "pool")
    graphs = device.graphs_on(torch.device("cuda"))
    assert graphs is not None
    graphs.run(lambda: asked.append("work"))
    replays = [graphs.captured(lambda: asked.append("work")) for _ in range(2)]
    replays[0]()
    uncaptured = ["side waits for main", "on side", "work", "off", "main waits for side"]
    capture = ["on side", "capture in pool on side", "work", "captured", "off"]
    assert asked == uncaptured + 2 * capture + ["replay"]
    assert device.graphs_on(torch.device("cpu")) is device.graphs_on(torch.device("meta")) is None


def test_no_graph_goes_before_the_others_of_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor one whose capture failed; others have another stream."""
    streams, made = list[object](), list[weakref.ref[Any]]()

    class Graph:
        def __init__(self) -> None:
            made.append(weakref.ref(self))

        def replay(self) -> None:
            pass

    @contextmanager
    def on(stream: object, **_: Any) -> Iterator[None]:
        streams.append(stream)
        yield

    @contextmanager
    def capturing(*_: Any, stream: object, **_others: Any) -> Iterator[None]:
        streams.append(stream)
        yield

    def fail() -> None:
        raise torch.OutOfMemoryError

    cleared = list[None]()
    monkeypatch.setattr(
        torch._C, "_cuda_clearCublasWorkspaces", lambda: cleared.append(None), raising=False
    )
    monkeypatch.setattr(torch.cuda, "Stream", object)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "stream", on)
    monkeypatch.setattr(torch.cuda, "graph", capturing)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: "pool")
    graphs, others = device.Graphs(), device.Graphs()
    assert len(cleared) == 1
    replay = graphs.captured(lambda: None)
    with pytest.raises(torch.OutOfMemoryError):
        graphs.captured(fail)
    others.captured(lambda: None)
    gc.collect()
    assert all(graph() is not None for graph in made)
    assert (
        len({id(stream) for stream in streams[:4]}) == 1
        and streams[4] is streams[5] is not streams[0]
    )
    del graphs, replay
    gc.collect()
    assert [graph() is None for graph in made] == [True, True, False]
    del others
    gc.collect()
    device.Graphs()
    assert len(cleared) == 2, "what cuBLAS kept for streams that are gone stays"
