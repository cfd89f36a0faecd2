from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import pytest

from tests.cluster.namespaces import PASSWORD, Cluster
from tests.support import own_study
from tests.support.command import results_table, sweep, typed, wait_for
from tests.support.object_store import object_store
from tests.support.one_ray import end_ray, start_ray
from tests.support.processes import Process


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


@pytest.mark.timeout(600)
def test_own_study_moves_through_object_store(tmp_path: Path) -> None:
    study = tmp_path / "own.py"
    study.write_text(Path(own_study.__file__).read_text())
    assert sweep(study, "--storage", tmp_path / "undisturbed").returncode == 0
    with object_store(tmp_path / "s3") as store:
        end_ray()  # a Ray started after this gives its workers the store's variables
        ray = start_ray()
        paths = ("--storage", f"s3://{store.bucket}/own", "--store", tmp_path / "results.db")

        def ended() -> dict[str, str]:
            objects = store.keys("own/trials")
            return {key: tag for key, tag in objects.items() if key.endswith("/result.json")}

        killed = Process(tmp_path, typed, study, "--max-concurrent", "1", *paths, ray=ray)
        killed.wait_until(ended, 200)
        killed.kill()
        first = ended()
        assert 1 <= len(first) < 8
        shutil.rmtree(store.environment["XDG_CACHE_HOME"], ignore_errors=True)
        ((status, out),) = Process(tmp_path, typed, study, *paths, ray=ray).end(timeout_s=300)
        assert status == 0, out
        assert first.items() <= ended().items(), "a finished trial ran again"
        diaries = [key for key in store.keys("own/trials") if key.endswith("/files/diary.txt")]
        assert len(diaries) == 8
        end_ray()
    table = results_table(tmp_path, str(study))
    assert table == results_table(tmp_path / "undisturbed", str(study))
