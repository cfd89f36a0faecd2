"""Values printed by the papers, one CSV file per table, and the papers' claims (claims.csv).

`table*` and `fig*` are from the AAAI-2021 paper, `sm_*` from its supplement, `ganea_*` from the
ICML-2019 talk. A printed value is a claim to check, not a target.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trainables.config import published_contexts

FOLDER = Path(__file__).parent
TITLES = {
    "fig2_gss_correlation": "Fig. 2, GSS",
    "ganea_language_modelling": "the talk (Ganea et al. 2019), language modelling",
    "sm_section5_press_rank": "SM 5.1, Press rank by contexts",
    "sm_table10_11_averaging": "SM Tables 10 and 11, averaging",
    "sm_table12_mos_dropout": "SM Table 12, dropout of MoS",
    "sm_table13_word_pairs": "SM Table 13, word pairs",
    "sm_table14_round_trips": "SM Table 14, round trips",
    "sm_table15_16_press_noise": "SM Tables 15 and 16, noise",
    "sm_table1_significance": "SM Table 1, significance",
    "sm_table2_predictions": "SM Table 2, likeliest words",
    "sm_table3_word_similarity": "SM Table 3, word similarity",
    "sm_table4_5_mos_k": "SM Tables 4 and 5, K of MoS",
    "sm_table6_hyperparameters": "SM Table 6, hyper-parameters",
    "sm_table7_8_9_fair_capacity_tuning": "SM Tables 7 to 9, tuning",
    "table1_reproduction": "Table 1, reproduction",
    "table2_seeds": "Table 2, seeds",
    "table3_plif_frozen": "Table 3, frozen PLIF",
    "table4_plif_vs_frozen": "Table 4, learned and frozen PLIF",
    "table5_fair_capacity": "Table 5, equal capacity",
    "table6_rank_metrics": "Table 6, rank metrics",
}
METRICS = {
    "train_ppl": "train_perplexity",
    "valid_ppl": "valid_perplexity",
    "test_ppl": "test_perplexity",
    "rank": "press_rank",
    "press_rank": "press_rank",
    "effective_rank_1e-3": "effective_rank_1e-3",
    "effective_rank_1e-4": "effective_rank_1e-4",
    "effective_rank_1e-5": "effective_rank_1e-5",
    "params_millions": "parameters",
    "seconds_per_epoch": "seconds_per_epoch",
    "seconds_per_epoch_v100": "seconds_per_epoch",
}
"""Our metric name for each table column."""
UNITS = {"params_millions": 1e6}

Row = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class PublishedNumber:
    """A printed value, or mean and standard deviation."""

    value: float
    deviation: float | None = None


PublishedTable = Mapping[str, Mapping[str, Mapping[str, PublishedNumber]]]
"""Printed numbers by corpus, group and metric."""
PublishedPredictions = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Predictions by model (or group) and context ("yang 1"), with the keys of the measurement top_k.
The true word has neither `probability` nor `rank` if the printed list ends before it."""


@cache
def rows(table: str) -> tuple[Row, ...]:
    """Return a CSV file's rows, with values as printed and "" for missing values."""
    with (FOLDER / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def by_group(table: str, group: Callable[[Row], str] = lambda row: row["model"]) -> PublishedTable:
    """Return a table's numbers. `group` returns a row's group. The default corpus is PTB."""
    table_groups: dict[str, dict[str, dict[str, PublishedNumber]]] = {}
    for row in rows(table):
        groups = table_groups.setdefault(row.get("corpus", "ptb"), {})
        groups[group(row)] = _numbers(row)
    return table_groups


def _numbers(row: Row) -> dict[str, PublishedNumber]:
    numbers = {}
    for column, text in row.items():
        name = column.removesuffix("_mean")
        if name not in METRICS or not text:
            continue
        deviation = row.get(f"{name}_sd")
        numbers[METRICS[name]] = PublishedNumber(
            value=round(float(text) * UNITS.get(name, 1.0), 6),
            deviation=float(deviation) if deviation else None,
        )
    return numbers


def p_values(table: str, column: str = "p_value_vs_softmax") -> dict[str, dict[str, float]]:
    """Return printed p-values by corpus and model."""
    values: dict[str, dict[str, float]] = {}
    for row in rows(table):
        if row[column]:
            values.setdefault(row.get("corpus", "ptb"), {})[row["model"]] = float(row[column])
    return values


@cache
def predictions() -> PublishedPredictions:
    """Return SM Table 2 by the paper's model names, with true words from the test text."""
    next_words = {
        f"{context.group} {context.number}": context.next_token or ""
        for context in published_contexts()
    }
    by_model: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows("sm_table2_predictions"):
        words, next_word = row["words"].split(), next_words[row["context"]]
        top = tuple(zip(words, map(float, row["probabilities"].split()), strict=True))
        by_model.setdefault(row["model"], {})[row["context"]] = {
            "next": next_word,
            "probability": dict(top).get(next_word),
            "rank": words.index(next_word) + 1 if next_word in words else None,
            "top": top,
        }
    return by_model
