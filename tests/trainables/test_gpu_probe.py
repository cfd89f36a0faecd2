"""Whether a GPU can run trials: by architectures, and with what keeps Triton from its first
launch."""

from __future__ import annotations

import pytest

from trainables.gpu_probe import has_code_for

CUDA_13 = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")


@pytest.mark.parametrize(
    ("capability", "built_for", "runs"),
    [
        ((7, 0), CUDA_13, False),  # V100
        ((8, 9), CUDA_13, True),  # RTX 40, by the code for 8.6
        ((9, 0), ("sm_90a",), True),  # H100
        ((10, 3), ("sm_120",), False),
        ((12, 1), ("sm_80", "compute_90"), True),  # compiled by the driver
        ((7, 0), ("compute_80",), False),
    ],
)
def test_torch_has_code_for_a_gpu_or_not(
    capability: tuple[int, int], built_for: tuple[str, ...], runs: bool
) -> None:
    assert has_code_for(capability, built_for) == runs
