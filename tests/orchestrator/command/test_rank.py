from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from orchestrator.command.rank import in_training_order
from tests.support.checkpoints import HEAD, NORM, head, write_checkpoint
from tests.support.command import sweep


def of_steps(folder: Path, *steps: int) -> list[Path]:
    return [
        write_checkpoint(
            folder / f"step{step}" / "model.safetensors",
            {HEAD: head(40, 6, decay=1 / (1 + step)), NORM: np.ones(6)},
            config={"model_type": "llama"},
        )
        for step in steps
    ]


def test_one_checkpoint_prints_every_measure(tmp_path: Path) -> None:
    (path,) = of_steps(tmp_path, 3)
    answer = sweep("rank", path)
    assert answer.returncode == 0, answer.stderr
    assert HEAD in answer.stderr and NORM in answer.stderr
    assert "log_p_rank_bound" in answer.stdout and "float32" in answer.stdout
    (ranks,) = json.loads(sweep("rank", path.parent, "--format", "json").stdout)["files"]
    lines = dict(
        csv.reader(io.StringIO(sweep("rank", path, "--tensor", HEAD, "--format", "csv").stdout))
    )
    assert list(lines) == ["measure", *(name for name in ranks if name not in ("step", "file"))]
    sigma = np.linalg.svd(head(40, 6, decay=1 / 4).astype(np.float32), compute_uv=False)
    assert ranks["sigma_min"] == pytest.approx(sigma[-1], rel=1e-6)
    assert float(lines["sigma_max"]) == pytest.approx(sigma[0], rel=1e-5)


def test_checkpoints_are_sorted_by_step(tmp_path: Path) -> None:
    paths = of_steps(tmp_path, 1000, 16, 0)
    answer = sweep("rank", *paths, "--format", "csv")
    assert answer.returncode == 0, answer.stderr
    rows = list(csv.DictReader(io.StringIO(answer.stdout)))
    assert [row["step"] for row in rows] == ["0", "16", "1000"]
    assert [row["file"] for row in rows] == [str(path) for path in reversed(paths)]
    ranks = [float(row["entropy_rank"]) for row in rows]
    assert ranks == sorted(ranks, reverse=True)
    assert answer.stderr.count("The head is") == 1, "a note for all files is printed once"
    records = json.loads(sweep("rank", *paths, "--format", "json").stdout)["files"]
    assert [record["step"] for record in records] == [0, 16, 1000] and {*records[0]} == {*rows[0]}
    table = sweep("rank", *paths).stdout
    assert "stable rank" in table and "1000" in table


def test_note_names_its_file(tmp_path: Path) -> None:
    paths = of_steps(tmp_path, 1, 2)
    np.save(tmp_path / "m.npy", head())
    answer = sweep("rank", *paths, tmp_path / "m.npy", "--format", "json")
    assert f"{paths[0]}, {paths[1]}: The head is" in answer.stderr
    records = json.loads(answer.stdout)["files"]
    assert [record["file"] for record in records] == [*map(str, paths), str(tmp_path / "m.npy")]
    assert records[2]["tensor"] is None and records[2]["press_rank"] == 8


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (["step1000.safetensors", "step200.safetensors"], [200, 1000]),
        (["checkpoint-2000/model.safetensors", "checkpoint-30/model.safetensors"], [30, 2000]),
        (["stage1-step140000-tokens588B/a.safetensors", "stage1-step0/a.safetensors"], [0, 140000]),
        (["step5/checkpoint-7.safetensors", "step5/global_step3.safetensors"], [3, 7]),
        (["step5/a.safetensors", "step5/b.safetensors"], []),
        (["step5.safetensors", "last.safetensors"], []),
        (["b.safetensors"], []),
    ],
)
def test_step_is_read_from_path(tmp_path: Path, names: list[str], steps: list[int]) -> None:
    files = [tmp_path / name for name in names]
    ordered, numbers = in_training_order(files)
    assert numbers == steps
    assert ordered == (files[::-1] if steps else files)
