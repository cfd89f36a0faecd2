"""Whatever is wrong with what was typed is one sentence that names it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import sweep


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("gss_gird",), "did you mean gss_grid"),
        (("gss_grid", "--scale", "quikc"), "did you mean quick"),
        (("gss_grid", "--corpus", "ptp", "--dry-run"), "did you mean ptb"),
        (("gss_grid", "--set", "training.epoch=3"), "did you mean training.epochs"),
        (("gss_grid", "--corpus", "{tmp}/partial", "--storage", "{tmp}/r"), "valid.txt is missing"),
        (("gss_grid", "--corpus", "ptb", "--data-dir", "{tmp}/wrong", "--storage", "{tmp}/r"), "train.txt"),
        (("gss_grid", "--scale", "smoke", "--corpus", "{tmp}/short", "--storage", "{tmp}/r"), "needs at least"),
        (("gss_grid", "--scale", "smoke", "--store", "{tmp}/newer.db", "--storage", "{tmp}/r"), "newer"),
        (("gss_grid", "--scale", "smoke", "--store", "mysql://here/db", "--storage", "{tmp}/r"), "mysql"),
        (("gss_grid", "--scale", "smoke", "--gpus-per-trial", "64", "--storage", "{tmp}/r"), "64"),
        (("gss_grid", "--scale", "smoke", "--storage", "/proc/nothing"), "--storage"),
        (("rank", "{tmp}/nan.npy"), "row 3"),
        (("rank", "{tmp}/absent.npy"), "cannot be opened"),
        (("rank", "{tmp}/low.npy", "--eps", "float64"), "qr"),
        (("status", "--storage", "{tmp}/nowhere"), "nowhere"),
        (("gss_grid", "--dry-run", "--gpus-per-trial", "1.5"), "at most 1"),
        (("report", "all", "--out", "{tmp}/there"), "--out is the folder of one report"),
        (("gss_grid", "--dry-run", "--format", "yaml"), "table, csv, json"),
        (("gss_grid", "--format", "json"), "--dry-run"),
        (("gss_grid", "--scale", "smoke", "--gpus-per-trial", "nan", "--storage", "{tmp}/r"), "gpus-per-trial"),
        (("statsu",), "did you mean status"),
        (("corpus", "check", "ptb", "--data-dir", "{tmp}/wrong"), "train.txt"),
        (("gss_grid", "--search", "tpe"), "gss_grid tunes nothing"),
        (("gss_grid", "--budget", "3"), "gss_grid tunes nothing"),
        (("fair_capacity", "--search", "gird"), "did you mean grid"),
        (("fair_capacity", "--budget", "0"), "from 1 to its 2,940 cells; got 0"),
        (("fair_capacity", "--budget", "3", "--search", "grid"), "no --budget"),
        (("fair_capacity", "--set", "model.dropout_hidden=0.1"), "which this study tunes"),
        (("fair_capacity", "--set", "output_layer.mixtures=3"), "2 of 3 trials, such as one of output layer softmax"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_clear_sentence(tmp_path: Path, arguments: tuple[str, ...], sentence: str) -> None:
    _bad_inputs(tmp_path)
    answer = sweep(*(argument.format(tmp=tmp_path) for argument in arguments))
    assert answer.returncode == 2, answer.stdout + answer.stderr
    last = answer.stderr.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert sentence in last
    assert "Traceback" not in answer.stdout + answer.stderr


def _bad_inputs(folder: Path) -> None:
    (folder / "partial").mkdir()
    (folder / "partial" / "train.txt").write_text("a b c\n" * 100)
    (folder / "wrong" / "ptb").mkdir(parents=True)
    (folder / "short").mkdir()
    for split in ("train", "valid", "test"):
        (folder / "wrong" / "ptb" / f"{split}.txt").write_text("not the penn treebank\n" * 50)
        (folder / "short" / f"{split}.txt").write_text("a b c\n")
    with sqlite3.connect(folder / "newer.db") as database:
        database.execute("create table alembic_version (version_num varchar(32) not null)")
        database.execute("insert into alembic_version values ('9999_from_the_future')")
    matrix = np.ones((10, 4))
    np.save(folder / "low.npy", matrix)
    matrix[3, 2] = np.nan
    np.save(folder / "nan.npy", matrix)
