"""Whether a GPU can run trials: by architectures, and with what keeps Triton from its first
launch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trainables.gpu_probe import has_code_for

ROOT = Path(__file__).parents[2]
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


TRIAL = """
import sys
from pathlib import Path

import torch
from triton.backends.nvidia.driver import CudaDriver

from tests.support.smoke_trials import smoke_trial
from trainables import device
from trainables.output_layers import fused
from trainables.runtime import Runtime
from trainables.trial import trial_run

CudaDriver.is_active = staticmethod(lambda: True)  # as with a GPU's driver
on_gpu = device.on_gpu
fused.runs_triton = lambda _: device.triton_problem("cpu") is None


def note_of_a_gpu(kind):
    device.on_gpu = lambda _: True
    try:
        return device.triton_note(kind)
    finally:
        device.on_gpu = on_gpu


trial_run.triton_note = note_of_a_gpu
folder = Path(sys.argv[1])
print(trial_run.run_trial(smoke_trial(**{'training.epochs': 1}), directory=folder, runtime=Runtime()).state)
print(*(line for line in (folder / "log.txt").read_text().splitlines() if "Triton" in line), sep="\\n")
"""


@pytest.mark.parametrize(
    ("mount", "cause"),
    [("", "Failed to find C compiler"), ("noexec", "failed to map segment from shared object")],
)
def test_a_trial_trains_without_working_triton(tmp_path: Path, mount: str, cause: str) -> None:
    """In Triton's own first launch: a driver library without functions stands for a GPU's."""
    pytest.importorskip("triton", reason="Triton is there for Linux alone")
    compiler = shutil.which("gcc")
    if compiler is None or (mount and os.geteuid()):
        pytest.skip("needs gcc, and root to mount a folder noexec")
    driver, cache = tmp_path / "driver", tmp_path / "cache"
    driver.mkdir()
    cache.mkdir()
    source = ["-shared", "-fPIC", "-x", "c", "/dev/null", "-o"]
    subprocess.run([compiler, *source, driver / "libcuda.so.1"], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {
        "TRITON_LIBCUDA_PATH": str(driver),
        "TRITON_CACHE_DIR": str(cache),
        "PYTHONPATH": str(ROOT),
    }
    trial = [sys.executable, "-c", TRIAL, str(tmp_path / "trial")]
    if mount:
        mounted = f'mount -t tmpfs -o {mount} tmpfs {cache} && exec "$@"'
        trial = ["unshare", "--mount", "sh", "-c", mounted, "sh", *trial]
    else:
        environment["PATH"] = str(cache)
    answer = subprocess.run(
        trial, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert answer.returncode == 0, answer.stderr
    state, note = answer.stdout.splitlines()
    assert state == "done"
    assert "trains without Triton's kernels, slower and with more memory" in note and cause in note
