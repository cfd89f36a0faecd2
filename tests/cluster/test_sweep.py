from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.cluster.namespaces import PASSWORD, Cluster
from tests.support.command import results_table, sweep, wait_for
from trainables.trial_folder.fence import FENCE

SMOKE = (
    "gss_grid",
    "--scale",
    "smoke",
    "--set",
    "training.epochs=60",
    "--set",
    "training.epoch_tokens=20000",
)
"""Options with which each trial takes about half a minute."""


@pytest.mark.timeout(900)
def test_lost_machines_change_no_result(
    three: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, second, third = three.network.machines
    process = three.head.popen(
        sys.executable, "sweep.py", *SMOKE, *three.options, "--address", three.address
    )
    fences = f"trials/*/*/{FENCE}"
    wait_for(
        lambda: len(list(three.storage.glob(fences))) == 3,
        timeout_s=200,
        event="three running trials",
    )
    time.sleep(3)
    third.kill()
    three.network.cut(second)
    out, err = process.communicate(timeout=400)
    assert process.returncode == 0, out + err
    assert out.count("it resumes from its last checkpoint") >= 2, out
    assert sweep(*SMOKE, "--storage", tmp_path / "undisturbed").returncode == 0
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    store = ("--store", three.store_url_from_outside.replace(f":{PASSWORD}", ""))
    assert results_table(three.storage, "gss_grid", *store) == results_table(
        tmp_path / "undisturbed"
    )
