"""Adds a GPU's rounding errors to Triton's interpreter, in which exp and / are exact.

From the PTX manual: ex2.approx has a relative error of up to 2^-22, and exp first rounds x log2 e;
div.full is off by up to 2 ulp. Errors have maximum size and pseudo-random signs; exact results such
as 1 / 1 stay exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from triton.runtime.interpreter import InterpreterBuilder

LOG2_E = np.float32(1.4426950408889634)


def emulate(monkeypatch: pytest.MonkeyPatch) -> None:

    def exp(self: Any, x: Any) -> Any:
        return self.unary_op(x, lambda x: _off(np.exp2((x * LOG2_E).astype(np.float64)), 2.0**-22))

    def divide(self: Any, left: Any, right: Any) -> Any:
        return self.binary_op(
            left, right, lambda left, right: _off(left.astype(np.float64) / right, 2.0**-22)
        )

    monkeypatch.setattr(InterpreterBuilder, "create_exp", exp)
    monkeypatch.setattr(InterpreterBuilder, "create_fdiv", divide)


def _off(exact: Any, relative: float) -> Any:
    rounded = exact.astype(np.float32)
    signs = 1 - 2 * (rounded.view(np.int32) & 1)
    return np.where(rounded == exact, rounded, exact * (1 + relative * signs)).astype(np.float32)
