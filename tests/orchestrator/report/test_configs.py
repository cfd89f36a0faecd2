"""From any number of a report to its configs: by its label, its setting's hash and the trials'
ids."""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from orchestrator.analysis.frames import flatten
from orchestrator.report.configs import config_records
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
NEWER = {
    "model": ("start", "head_rank"),
    "training": ("optimizer", "warm_up_tokens"),
    "evaluation": ("epoch_rank_contexts",),
}
"""Config values that are no part of an identity while they are what they were before there was a
choice."""
CONFIG_KEYS = ("output_layer.c", "output_layer.k")


def trials(corpus: CorpusConfig) -> Iterator[TrialConfig]:
    """Six settings, three seeds of each."""
    for seed, c, k in itertools.product((1, 2, 3), (-1.0, 0.0, 1.0), (1.5, 2.0)):
        yield TrialConfig(seed=seed, corpus=corpus, output_layer=GssConfig(c=c, k=k))


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """Named so that no two settings can be told by their names, as an older store may have it."""
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


def test_each_setting_has_one_line_with_its_trials(
    rows: list[dict[str, Any]], folder: Path
) -> None:
    configs = csv_records(folder / "configs.csv")
    settings: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        content = {key: value for key, value in row["config"].items() if key != "seed"}
        for section, keys in NEWER.items():
            content[section] = {
                key: value for key, value in content[section].items() if key not in keys
            }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        settings.setdefault(hashlib.sha256(text.encode()).hexdigest(), []).append(row)
    assert {line["setting"]: line["trial_ids"].split() for line in configs} == {
        setting[:12]: [row["trial_id"] for row in members] for setting, members in settings.items()
    }
    assert len({line["group"] for line in configs}) == len(configs) == 6
    assert {
        (float(line["output_layer.c"]), float(line["output_layer.k"])) for line in configs
    } == set(itertools.product((-1.0, 0.0, 1.0), (1.5, 2.0)))
    page = (folder / "report.html").read_text()
    assert all(line["setting"] in page and line["trial_ids"][:12] in page for line in configs)


def test_every_label_in_every_file_is_one_of_the_configs(folder: Path) -> None:
    known = {line["group"] for line in csv_records(folder / "configs.csv")}
    labelled: dict[str, set[str]] = {}
    for file in folder.glob("*.csv"):
        for line in csv_records(file):
            if shown := {line[name] for name in LABELS if name in line}:
                labelled[file.name] = labelled.get(file.name, set()) | shown
    assert all(shown <= known for shown in labelled.values())
    files = ("configs", "groups", "differences", "tests", "counts", "cells", "curves")
    assert set(labelled) == {f"{name}.csv" for name in files}


def values(folder: Path, setting: str, metric: str) -> list[float]:
    """Of the lines that `results --setting` prints as well."""
    return [
        float(row[metric])
        for row in csv_records(folder / "trials.csv")
        if row["setting"] == setting
    ]


def test_a_mean_comes_out_again_from_the_trials_of_its_setting(folder: Path) -> None:
    setting = {line["group"]: line["setting"] for line in csv_records(folder / "configs.csv")}
    means: list[tuple[float, str, str]] = []
    for line in csv_records(folder / "groups.csv"):
        means += [(float(line[f"{metric}_mean"]), line["group"], metric) for metric in METRICS]
        assert line["trials"] == line["done"] == "3"
    for line in csv_records(folder / "cells.csv"):
        means += [(float(line[metric]), line["group"], metric) for metric in METRICS]
    for line in csv_records(folder / "tests.csv"):
        means += [
            (float(line[f"mean_{whose}"]), line[whose], "test_perplexity") for whose in LABELS
        ]
    for line in csv_records(folder / "curves.csv"):
        means += [(float(line[metric]), line["group"], metric) for metric in METRICS]
    assert len(means) == 12 + 12 + 10 + 12
    for printed, group, metric in means:
        assert math.isclose(printed, mean(values(folder, setting[group], metric)))


def test_a_number_without_a_label_leads_there_by_its_config_values(folder: Path) -> None:
    configs = csv_records(folder / "configs.csv")
    setting = {tuple(float(line[key]) for key in CONFIG_KEYS): line["setting"] for line in configs}
    with (folder / "press_rank_over_c_k.csv").open(newline="") as stream:
        (corner, *ks), *cells = csv.reader(stream)
    assert corner == " \\ ".join(CONFIG_KEYS)
    for (c, *numbers), _ in zip(cells, range(3), strict=True):
        for k, number in zip(ks, numbers, strict=True):
            assert math.isclose(
                float(number), mean(values(folder, setting[float(c), float(k)], "press_rank"))
            )
    for line in csv_records(folder / "lines.csv"):
        ours = values(
            folder, setting[tuple(float(line[key]) for key in CONFIG_KEYS)], line["metric"]
        )
        assert math.isclose(float(line["mean"]), mean(ours)) and int(line["n"]) == 3


def test_a_cell_over_several_settings_says_so(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    assert "over c and k, each the mean of 3 trials." in page
    assert "over c and seed, each the mean of 2 trials of up to 2 settings." in page


def test_every_config_is_looked_at_once_however_many_settings_there_are(
    rows: list[dict[str, Any]],
) -> None:
    config = rows[0]["config"]
    configs = [
        config | {"seed": seed, "output_layer": config["output_layer"] | {"c": c}}
        for c in range(100)
        for seed in (1, 2, 3)
    ]
    results = flatten(
        [
            {**rows[0], "trial_id": str(number), "config": config}
            for number, config in enumerate(configs)
        ]
    )

    def cost_s(action: Callable[[], object]) -> float:
        start_s = time.process_time()
        action()
        return time.process_time() - start_s

    assert len(config_records(results)) == 100
    assert cost_s(lambda: config_records(results)) < 20 * cost_s(lambda: results.varying)
