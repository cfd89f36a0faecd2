"""Tests of GPU code without a GPU: the device "meta" checks shapes and dtypes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from tests.support import tiny_transformer
from tests.support import tiny_trial as tiny
from tests.support.device_trials import LAYERS, STACKED, trainer_on
from tests.support.products import DtypeRecorder
from trainables import device
from trainables.config import LanguageTrialConfig, OutputLayerConfig
from trainables.language_model import transformer
from trainables.runtime import Runtime
from trainables.stack.validation import valid_losses
from trainables.training import Trainer, loop

FACTORS = {"float32": torch.float32, "bf16": torch.bfloat16}


@pytest.mark.parametrize("precision", FACTORS)
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
@pytest.mark.parametrize("new", [partial(tiny.trial, bptt=5), tiny_transformer.trial])
def test_gpu_products_have_their_precision(
    new: Callable[..., LanguageTrialConfig],
    layer: OutputLayerConfig,
    precision: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The device "meta" runs a GPU's code without a GPU. It has no generators and no attention.
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
    with DtypeRecorder() as recorder:
        trainer._forward(trainer.next_window())[1].backward()
    assert recorder.product_dtypes == attended | {FACTORS[precision]} == {FACTORS[precision]}
    tensors = [tensor for pair in trainer.state for tensor in pair]
    tensors += [t for p in trainer.model.parameters() for t in (p, p.grad) if t is not None]
    assert {tensor.dtype for tensor in tensors} == {torch.float32}


def flags() -> tuple[str, str, str, bool]:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    reduced = matmul.allow_bf16_reduced_precision_reduction
    return matmul.fp32_precision, cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision, reduced  # type: ignore[attr-defined]


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
def test_flags_are_restored(precision: device.Precision) -> None:
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


def bf16_trainers(layer: OutputLayerConfig, device_name: str) -> list[Trainer]:
    return [trainer_on(device_name, layer, seed=seed, precision="bf16") for seed in (1, 2, 3)]


def test_validation_is_in_float32() -> None:
    trainers = bf16_trainers(STACKED[4], "cpu")
    for trainer in trainers:
        trainer.step()
    with DtypeRecorder() as recorder:
        stacked = valid_losses(trainers)
        alone = [trainer.end_epoch().valid_loss for trainer in trainers]
    assert recorder.product_dtypes == {torch.float32}
    assert stacked == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize("message", ["Failed to find C compiler", "CUDA out of memory"])
def test_note_explains_missing_triton(message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a GPU is out of memory, the message must not blame Triton."""
    pytest.importorskip("triton", reason="Triton exists for Linux only")

    def fail(_device: torch.device) -> None:
        raise RuntimeError(message)

    monkeypatch.setattr("trainables.one_element_kernel.launch", fail)
    device.triton_problem.cache_clear()
    if "memory" in message:
        with pytest.raises(RuntimeError, match=message):
            device.triton_note("cuda")
    else:
        assert message in str(device.triton_note("cuda"))
    device.triton_problem.cache_clear()
