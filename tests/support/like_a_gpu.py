"""Uses the device "meta", whose tensors have no values, in place of a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from trainables.output_layers import fused
from trainables.stack import lstm, update
from trainables.training import loop
from trainables.training import lstm as lstm_recipe
from trainables.training.transformer import TransformerRecipe

_meta = torch.library.Library("aten", "IMPL", "Meta")


def _summed_in(
    total: Tensor, left: Tensor, right: Tensor, out_dtype: torch.dtype, *, out: Tensor, **_: Any
) -> Tensor:
    assert left.dtype == right.dtype != out_dtype == out.dtype == total.dtype
    assert (
        out.shape == total.shape == (len(left), left.shape[1], right.shape[2])
        and left.shape[2] == right.shape[1]
    )
    return out


_meta.impl("baddbmm.dtype_out", _summed_in)


@contextmanager
def like_a_gpu(window: int) -> Iterator[None]:
    """Make trainers on the device "meta" run GPU code, including Triton.

    Every window has `window` tokens.
    """
    with ExitStack() as stack:
        enter = stack.enter_context
        enter(
            patch.object(
                loop, "generator", lambda seed, _device: torch.Generator().manual_seed(seed)
            )
        )
        enter(patch.object(lstm_recipe, "draw_window", lambda _bptt, _draws: window))
        enter(patch.object(TransformerRecipe, "first_position", lambda *_: 0))
        for module in (lstm, fused, update):
            enter(patch.object(module, "runs_triton", lambda device: device.type == "meta"))
        yield
