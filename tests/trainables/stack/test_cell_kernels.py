"""Without a GPU, Triton interprets the kernels."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.support.device_trials import trainer_on
from trainables.config import GssConfig, LmsPlifConfig, MosConfig, OutputLayerConfig
from trainables.device import ALIGNMENT
from trainables.output_layers import fused
from trainables.stack import Stack, lstm

DEVICE = "cuda" if torch.cuda.is_available() and "TRITON_INTERPRET" not in os.environ else "cpu"
pytest.importorskip("triton", reason="Triton exists for Linux only")
LAYERS: tuple[OutputLayerConfig, ...] = (
    GssConfig(c=-1.5, k=2.5),
    LmsPlifConfig(knots=31, limit=3.0),
    MosConfig(mixtures=2, latent_dropout=0.3),
)
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in exp:RuntimeWarning")


@pytest.fixture(autouse=True)
def _kernels_in_small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from tests.support import gpu_arithmetic
    from trainables.stack import cell_kernels

    if DEVICE == "cpu":
        gpu_arithmetic.emulate(monkeypatch)
        monkeypatch.setattr(cell_kernels, "MAX_COLUMNS", 16)
    monkeypatch.setattr(lstm, "runs_triton", lambda device: device.type == DEVICE)
    yield


class Step:
    def __init__(
        self, shape: tuple[int, int, int], dtype: torch.dtype, scale: float, seed: int
    ) -> None:
        models, batch, width = shape
        draw = torch.Generator().manual_seed(seed)

        def normal(*sizes: int, scale: float = 1.0) -> Tensor:
            return (scale * torch.randn(models, *sizes, generator=draw)).to(DEVICE)

        self.sums = normal(3, batch, 4 * width, scale=scale).to(dtype)[:, 1]
        self.c_pair = normal(3, batch, width)[:, 1:]
        self.by_output = normal(3, batch, width)[:, 1]
        self.bias = normal(4 * width)
        room = width + -width % ALIGNMENT
        self.by_h = normal(batch, room).to(dtype)[..., :width]
        self.by_c = normal(batch, width)
        self.h = normal(3, batch, room).to(dtype)[:, 1, :, :width]

    def forward_(self) -> tuple[Tensor, Tensor]:
        from trainables.stack import cell_kernels

        cell_kernels.cell_(self.sums, self.bias, self.c_pair[:, 0], self.c_pair[:, 1], self.h)
        return self.c_pair[:, 1].double(), self.h.double()

    def backward(self) -> tuple[Tensor, Tensor]:
        from trainables.stack import cell_kernels

        by_sums = self.sums.new_empty(len(self.sums), 3, *self.sums.shape[1:])[:, 1]
        by_states = self.by_output, self.by_h, self.by_c.clone()
        by_c = cell_kernels.cell_back(self.sums, self.bias, self.c_pair, by_states, out=by_sums)
        return by_sums.double(), by_c.double()

    def truth(self, sums: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        i, f, g, o = (sums + self.bias.to(sums.dtype).unsqueeze(1)).chunk(4, dim=2)
        new = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return new, o.sigmoid() * new.tanh()

    def objective(self, sums: Tensor, c: Tensor) -> Tensor:
        new, h = self.truth(sums, c)
        by_h = self.by_output.double() + self.by_h.double()
        return (new * self.by_c.double()).sum() + (h * by_h).sum()


shapes = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 40))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@given(shape=shapes, scale=st.sampled_from([0.01, 1.0, 10.0, 200.0]), seed=st.integers(0, 1000))
@settings(max_examples=5, deadline=None)
def test_step_and_gradients_equal_formulas(
    dtype: torch.dtype, shape: tuple[int, int, int], scale: float, seed: int
) -> None:
    step = Step(shape, dtype, scale, seed)
    sums, c_before = (tensor.double().requires_grad_() for tensor in (step.sums, step.c_pair[:, 0]))
    c, h = step.forward_()
    true_c, true_h = step.truth(sums, c_before)
    # bf16 results have 8 bits, and Triton's interpreter truncates the rest.
    relative = 3e-6 if dtype == torch.float32 else 2.0**-7
    torch.testing.assert_close(c, true_c.detach(), rtol=3e-6, atol=2e-6)
    torch.testing.assert_close(h, true_h.detach(), rtol=relative, atol=2e-6)
    by_sums, by_c = step.backward()
    true_by_sums, true_by_c = torch.autograd.grad(step.objective(sums, c_before), (sums, c_before))
    # Incoming gradients reach 8, and a gate's gradient multiplies them by a state of up to 4.
    torch.testing.assert_close(by_sums, true_by_sums, rtol=relative, atol=4e-6)
    torch.testing.assert_close(by_c, true_by_c, rtol=1e-5, atol=2e-6)


def test_small_numbers_keep_their_digits() -> None:
    """Small inputs and a zero state give a small h, whose relative error must stay small."""
    step = Step((1, 1, 30), torch.float32, 1e-4, 1)
    step.c_pair[:, 0] = 0
    c, h = step.forward_()
    true_c, true_h = step.truth(step.sums.double(), step.c_pair[:, 0].double())
    torch.testing.assert_close(c, true_c, rtol=1e-5, atol=0)
    torch.testing.assert_close(h, true_h, rtol=1e-5, atol=0)


def test_nan_stays_in_its_model() -> None:
    step = Step((2, 3, 20), torch.float32, 1.0, 0)
    step.sums[0, 1, 7] = torch.nan
    for tensor in (*step.forward_(), *step.backward()):
        assert tensor[0].isnan().any() and not tensor[1].isnan().any()


def test_kernels_change_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def weights_after_a_step(*, kernels: bool) -> list[Tensor]:
        for module in (fused, lstm):
            monkeypatch.setattr(module, "runs_triton", lambda _: kernels)
        trainers = [
            trainer_on(DEVICE, layer, seed=seed, batch_size=2, bptt=5)
            for seed, layer in enumerate(LAYERS, 1)
        ]
        Stack(trainers).step()
        return [weight.detach() for trainer in trainers for weight in trainer.model.parameters()]

    expected, weights = weights_after_a_step(kernels=False), weights_after_a_step(kernels=True)
    assert not all(map(torch.equal, weights, expected)), "the kernels did not run"
    for weight, without in zip(weights, expected, strict=True):
        assert (weight - without).norm() <= 1e-5 * without.norm() + 1e-7
