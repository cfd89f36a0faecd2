from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from orchestrator.analysis.frames import flatten
from search_spaces.study import (
    Comparison,
    Correlation,
    Counts,
    Curves,
    Differences,
    GridMap,
    GroupTable,
    Lines,
)
from tests.support.synthetic_results import STUDY, csv_records, make_results, report_on
from trainables.config import CorpusConfig, GssConfig, TrialConfig

METRICS = ("test_perplexity", "press_rank")
LABELS = ("group", "baseline")
CONFIG_KEYS = ("output_layer.c", "output_layer.k")


def trials(corpus: CorpusConfig) -> Iterator[TrialConfig]:
    for seed, c, k in itertools.product((1, 2, 3), (-1.0, 0.0, 1.0), (1.5, 2.0)):
        yield TrialConfig(seed=seed, corpus=corpus, output_layer=GssConfig(c=c, k=k))


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    rows, _ = make_results(replace(STUDY, trials=trials), columns=50)
    return [
        row | {"name": f"x{' ' * i}seed={row['config']['seed']}"} for i, row in enumerate(rows, 1)
    ]


@pytest.fixture(scope="module")
def folder(rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    groups = list(dict.fromkeys(flatten(rows).groups))
    baselines = dict.fromkeys(groups[1:], groups[0])
    requests = (
        Correlation(),
        GridMap(row="output_layer.c", column="output_layer.k"),
        GridMap(row="output_layer.c", column="seed"),
        GroupTable(metrics=METRICS),
        Differences(baselines=baselines),
        Comparison(baselines=baselines),
        Counts(metric="press_rank"),
        Curves(x="press_rank", metrics=("test_perplexity",), caption="made up"),
        Lines(x="output_layer.c", by="output_layer.k", metrics=METRICS),
    )
    return report_on(
        rows, tmp_path_factory.mktemp("report"), study=replace(STUDY, analyses=requests)
    ).path.parent


def test_setting_has_one_line(rows: list[dict[str, Any]], folder: Path) -> None:
    configs = csv_records(folder / "configs.csv")
    trial_ids: dict[tuple[float, float], list[str]] = {}
    for row in rows:
        layer = row["config"]["output_layer"]
        trial_ids.setdefault((layer["c"], layer["k"]), []).append(row["trial_id"])
    lines = {tuple(float(line[key]) for key in CONFIG_KEYS): line for line in configs}
    assert {key: line["trial_ids"].split() for key, line in lines.items()} == trial_ids
    for name in ("group", "setting"):
        assert len({line[name] for line in configs}) == len(configs) == 6
    page = (folder / "report.html").read_text()
    assert all(line["setting"] in page and line["trial_ids"][:12] in page for line in configs)


def values(folder: Path, setting: str, metric: str) -> list[float]:
    return [
        float(row[metric])
        for row in csv_records(folder / "trials.csv")
        if row["setting"] == setting
    ]


def test_printed_mean_follows_from_trials(folder: Path) -> None:
    setting = {line["group"]: line["setting"] for line in csv_records(folder / "configs.csv")}
    means: list[tuple[float, str, str]] = []
    for line in csv_records(folder / "groups.csv"):
        means += [(float(line[f"{metric}_mean"]), line["group"], metric) for metric in METRICS]
        assert line["trials"] == line["done"] == "3"
    for line in csv_records(folder / "cells.csv"):
        means += [(float(line[metric]), line["group"], metric) for metric in METRICS]
    for line in csv_records(folder / "tests.csv"):
        means += [
            (float(line[f"mean_{label}"]), line[label], "test_perplexity") for label in LABELS
        ]
    for line in csv_records(folder / "curves.csv"):
        means += [(float(line[metric]), line["group"], metric) for metric in METRICS]
    assert len(means) == 12 + 12 + 10 + 12
    for printed, group, metric in means:
        assert math.isclose(printed, mean(values(folder, setting[group], metric)))


def test_page_explains_averaged_cells(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    assert "over c and k, each cell the mean of 3 trials." in page
    assert "over c and seed, each cell the mean of 2 trials of up to 2 settings." in page
