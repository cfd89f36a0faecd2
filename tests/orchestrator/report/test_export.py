from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from orchestrator.analysis.frames import FlatResults, flatten
from orchestrator.report.export import write_parquet, write_results
from orchestrator.report.tables import group_metrics, trials_table
from search_spaces.catalog import load_study
from tests.support.synthetic_results import fail, make_results, trial_row
from trainables.errors import UserError


@pytest.fixture(scope="module")
def results() -> FlatResults:
    rows, _ = make_results(columns=100)
    rows[5] = fail(rows[5], state="failed", cause='ValueError: "a", b\nand [bold]c')
    return flatten(rows)


def written(results: FlatResults, form: Any) -> str:
    stream = io.StringIO()
    write_results(results, form, stream)
    return stream.getvalue()


def test_files_hold_every_value(results: FlatResults, tmp_path: Path) -> None:
    records = [dict(record) for record in results.records]
    assert json.loads(written(results, "json"))["trials"] == records
    write_parquet(results.columns, results.records, tmp_path / "results.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "results.parquet").to_pylist() == records
    head, *lines = csv.reader(io.StringIO(written(results, "csv")))
    assert tuple(head) == results.columns and len(lines) == 72
    assert float(lines[7][head.index("test_perplexity")]) == records[7]["test_perplexity"]
    table = written(results, "table")
    assert all(record["name"] in table for record in records) and "[bold]c" in table


@pytest.mark.parametrize("form", ["table", "csv", "json", "parquet"])
@pytest.mark.parametrize(
    "metrics",
    [
        [{"test_perplexity": 1e308, "train_perplexity": -1e308}],
        [{"test_perplexity": 2**63 - 1, "train_perplexity": -(2**63)}],
        [{"x": "text"}, {"x": 1}, {"x": True}],
        [{"x": 2**60 + 1}, {"x": 0.5}],
        [{"x": "half a character \ud800"}, {"\udfff": 1}],
    ],
)
def test_any_stored_value_is_exported(
    tmp_path: Path, metrics: list[dict[str, Any]], form: Any
) -> None:
    results = flatten(
        [trial_row(f"x seed={seed}", **values) for seed, values in enumerate(metrics)]
    )
    if form != "parquet":
        assert written(results, form)
        return
    write_parquet(results.columns, results.records, tmp_path / "x.parquet")
    lines = pyarrow.parquet.read_table(tmp_path / "x.parquet").to_pylist()
    for line, values in zip(lines, metrics, strict=True):
        for name, value in values.items():
            exported = line[name.replace("\udfff", "\\udfff")]
            assert exported == value or exported == str(value).replace("\ud800", "\\ud800")


@pytest.mark.parametrize("name", ["test_perplexity", "name", "corpus"])
def test_column_name_as_setting_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"'{name}' both as"):
        flatten([trial_row("x", config={name: 1}, test_perplexity=2.0)])


@pytest.mark.parametrize("form", ["csv", "table"])
def test_listing_imports_no_heavy_packages(form: str) -> None:
    code = "import sys, orchestrator.report.export as e, orchestrator.analysis.frames as f\n"
    code += f"e.write_results(f.flatten([]), {form!r}, sys.stderr)\n"
    slow = ("pandas", "matplotlib", "scipy.stats", "torch", "ray")
    code += f"print([m for m in {slow} if m in sys.modules])"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


def test_study_metrics_come_first() -> None:
    metrics = {
        "zero_share": 0.5,
        "vanishing_1e-3": 0.5,
        "entropy_rank": 61.0,
        "sigma_max": 2.0,
        "sigma_min": 0.0,
    }
    row = trial_row("dense seed=1", config={"seed": 1}, **metrics)
    study_metrics = group_metrics(load_study("layer_jacobian"))
    assert study_metrics[0] == "zero_share" and "log10_condition_excess" in study_metrics
    table = trials_table(flatten([row]), study_metrics)
    own_heads = ["rows of zeros", "vanishing share (at most 1e-3 of the largest)"]
    assert table.head == ["trial", "state", *own_heads, "entropy rank"]
    assert trials_table(flatten([row])).head == ["trial", "state", "entropy rank"]
