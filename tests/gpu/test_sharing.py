"""CUDA's MPS: two processes train on one GPU through a daemon of the test's own."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
TRIAL = """
from tests.support.device_trials import LAYERS, losses, trainer_on
trainer = trainer_on("cuda", LAYERS[2])
print(losses(trainer, 20)[-1])
"""


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The program that asks a running daemon. The daemon's folder has a short name, as those of sockets must be."""
    # By its file: the room that it is in needs packages that are not here.
    spec = importlib.util.spec_from_file_location("gpu_share", ROOT / "orchestrator/worker/gpu_share.py")
    assert spec is not None and spec.loader is not None
    gpu_share = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gpu_share)
    folder = tempfile.mkdtemp(prefix="mps-", dir="/tmp")
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", folder)
    why = gpu_share.start_mps()
    if why is not None:
        pytest.skip(f"no MPS, since {why}")
    yield gpu_share.CONTROL
    subprocess.run([gpu_share.CONTROL], input="quit\n", text=True, timeout=60)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here that torch can use")
def test_two_processes_train_on_one_gpu_through_its_server(control: str) -> None:
    trials = [
        subprocess.Popen([sys.executable, "-c", TRIAL], cwd=ROOT, text=True, stdout=subprocess.PIPE) for _ in range(2)
    ]
    losses = [float(trial.communicate(timeout=200)[0] or "nan") for trial in trials]
    assert [trial.returncode for trial in trials] == [0, 0]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    servers = subprocess.run([control], input="get_server_list\n", capture_output=True, text=True, timeout=60).stdout
    assert servers.split(), "clients had no server: they ran without MPS"
