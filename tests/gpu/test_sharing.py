"""CUDA's MPS: two processes train on one GPU through a daemon of the test's own."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from benchmarks.gpu_processes import ROOT, gpu_share, mps_daemon

TRIAL = """
from tests.support.device_trials import LAYERS, losses, trainer_on
trainer = trainer_on("cuda", LAYERS[0])
print(losses(trainer, 20)[-1])
"""


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here that torch can use")
def test_two_processes_train_on_one_gpu_through_its_server() -> None:
    with mps_daemon() as why_not:
        if why_not is not None:
            pytest.skip(f"no MPS, since {why_not}")
        trials = [
            subprocess.Popen([sys.executable, "-c", TRIAL], cwd=ROOT, text=True, stdout=subprocess.PIPE)
            for _ in range(2)
        ]
        losses = [float(trial.communicate(timeout=200)[0] or "nan") for trial in trials]
        asked = [gpu_share().CONTROL]
        servers = subprocess.run(asked, input="get_server_list\n", capture_output=True, text=True, timeout=60).stdout
    assert [trial.returncode for trial in trials] == [0, 0]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert servers.split(), "clients had no server: they ran without MPS"
