"""The ways of a GPU, on a machine without one: by shapes and dtypes on torch's device "meta", which
has no numbers to read back, so that whatever waits for one fails. With a GPU, tests/gpu has the
numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.support import output_layer_formulas as formulas
from tests.support import tiny_transformer
from tests.support import tiny_trial as tiny
from tests.support.device_trials import LAYERS
from tests.support.products import Asked
from trainables import device
from trainables.config import LanguageTrialConfig, MonotoneNnConfig, OutputLayerConfig
from trainables.language_model import transformer
from trainables.output_layers import monotone_nn
from trainables.runtime import Runtime
from trainables.training import Trainer, loop

ROOT = Path(__file__).parents[2]
FACTORS = {"float32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16}


@pytest.mark.parametrize("precision", FACTORS)
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
@pytest.mark.parametrize("new", [tiny.trial, tiny_transformer.trial])
def test_products_are_in_their_precision_on_a_gpu(
    new: Callable[..., LanguageTrialConfig],
    layer: OutputLayerConfig,
    precision: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And nothing is read back. The device has no generators, and neither Adam's kernel nor that of
    attention, whose inputs are looked at."""
    attended: set[torch.dtype] = set()

    def attention(query: Tensor, key: Tensor, value: Tensor, *, is_causal: bool) -> Tensor:
        assert is_causal
        attended.update(tensor.dtype for tensor in (query, key, value))
        return query + key + value

    monkeypatch.setattr(transformer, "scaled_dot_product_attention", attention)
    monkeypatch.setattr(
        loop, "generator", lambda seed, _device: torch.Generator().manual_seed(seed)
    )
    config = new(output_layer=layer, precision=precision)
    trainer = Trainer(config, tiny.corpus(), Runtime(device="meta"))
    with Asked() as asked:
        trainer._forward(trainer.next_window())[1].backward()
    assert asked.product_dtypes == attended | {FACTORS[precision]} == {FACTORS[precision]}
    kept = [tensor for pair in trainer.state for tensor in pair]
    kept += [t for p in trainer.model.parameters() for t in (p, p.grad) if t is not None]
    assert {tensor.dtype for tensor in kept} == {torch.float32}


def flags() -> tuple[str, str, str, bool]:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    reduced = matmul.allow_bf16_reduced_precision_reduction
    return matmul.fp32_precision, cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision, reduced  # type: ignore[attr-defined]


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
def test_flags_are_set_and_put_back(precision: device.Precision) -> None:
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


def test_validation_is_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_network_with_weights_on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU, with the tensors that take the place of floats there."""
    inputs = formulas.inputs(20, 4, 9)
    layer = formulas.layer_of(MonotoneNnConfig(units=5), 9, 4)
    with_floats = formulas.loss_and_gradients(layer, *inputs)
    monkeypatch.setattr(monotone_nn, "numbers", Tensor.unbind)
    found = formulas.loss_and_gradients(layer, *inputs)
    torch.testing.assert_close(found, with_floats, rtol=1e-12, atol=1e-14)
