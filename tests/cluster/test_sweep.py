"""The real sweep on three machines ends with the table of an undisturbed run, whatever happens to two of them."""

from __future__ import annotations

import csv
import io
import sys
import time
from pathlib import Path

from tests.support.command import TIMES, results_table, sweep
from tests.support.namespaces import Cluster
from trainables.trial_folder.folder import FENCE

SMOKE = ("gss_grid", "--scale", "smoke", "--set", "training.epochs=60", "--set", "training.epoch_tokens=20000")
"""Trials of half a minute or so."""


def table(three: Cluster) -> list[dict[str, str]]:
    """The results, asked for on a machine that has run none of them, without what a repetition changes."""
    place = ("--storage", three.storage, "--store", three.store_url)
    answer = three.head.sweep("results", "gss_grid", *place, "--format", "csv")
    assert answer.returncode == 0, answer.stderr
    rows = csv.DictReader(io.StringIO(answer.stdout))
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


def test_a_sweep_whose_machines_are_killed_and_cut_off_has_the_table_of_an_undisturbed_run(
    three: Cluster, tmp_path: Path
) -> None:
    _, second, third = three.network.machines
    place = ("--storage", three.storage, "--store", three.store_url, "--address", three.address)
    process = three.head.popen(sys.executable, "sweep.py", *SMOKE, *place)
    deadline_s = time.monotonic() + 200
    while len(list(three.storage.glob(f"trials/*/*/{FENCE}"))) < 3:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline_s, "no three trials were begun"
        time.sleep(0.1)
    time.sleep(3)
    third.kill()
    three.network.cut(second)
    out, err = process.communicate(timeout=400)
    assert process.returncode == 0, out + err
    assert out.count("it goes on from its last checkpoint") >= 2, out
    assert sweep(*SMOKE, "--storage", tmp_path / "undisturbed").returncode == 0
    assert table(three) == results_table(tmp_path / "undisturbed")
