from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.cluster.namespaces import PASSWORD, Cluster
from tests.support import own_study
from tests.support.command import results_table, sweep, wait_for


@pytest.mark.timeout(600)
def test_two_drivers_lose_a_machine(
    three: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = tmp_path / "own.py"
    study.write_text(
        Path(own_study.__file__).read_text().replace("epochs: int = 12", "epochs: int = 20")
    )
    head, second, third = three.network.machines
    words = (study, *three.options, "--address", three.address)
    drivers = [machine.popen(sys.executable, "sweep.py", *words) for machine in (head, second)]
    diaries = "trials/*/*/files/diary.txt"
    wait_for(lambda: len(list(three.storage.glob(diaries))) == 3, timeout_s=60, event="3 starts")
    time.sleep(3)
    third.kill()
    for driver in drivers:
        out, err = driver.communicate(timeout=200)
        assert driver.returncode == 0, out + err
    assert sweep(study, "--storage", tmp_path / "undisturbed").returncode == 0
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    store = ("--store", three.store_url_from_outside.replace(f":{PASSWORD}", ""))
    table = results_table(three.storage, str(study), *store)
    assert table == results_table(tmp_path / "undisturbed", str(study))
    assert {row["state"] for row in table} == {"done"}
    starts = sum(path.read_text().count("start") for path in three.storage.glob(diaries))
    assert starts == len(table) + 1, "only the trial of the lost machine starts again"
