"""Which configs are behind the labels of a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.analysis import ID_DIGITS, FlatResults
from orchestrator.report.export import plain
from orchestrator.report.tables import Cell, TextTable, text_table

CONFIGS_FILE = "configs.csv"


def config_records(results: FlatResults) -> list[dict[str, Any]]:
    """A record for each setting of each group: label, hash, trials, done ones and their ids, and
    every config value but the seed that differs between trials, which files without a label refer
    to."""
    varying = [name for name in results.varying if name != "seed"]
    return [
        {
            "group": group,
            "setting": setting,
            "trials": len(trials),
            "done": sum(trial["state"] == "done" for trial in trials),
            "trial_ids": " ".join(trial["trial_id"] for trial in trials),
            **{name: plain(trials[0][name]) for name in varying},
        }
        for (group, setting), trials in _trials(results).items()
    ]


def configs_table(results: FlatResults) -> TextTable:
    """The same without config values, and with the first digits of the ids."""
    return text_table(
        "The settings behind the labels, each a config without its seed",
        (
            {
                "label": group,
                "setting": setting,
                "trials": len(members),
                "ids": Cell(" ".join(trial["trial_id"][:ID_DIGITS] for trial in members)),
            }
            for (group, setting), members in _trials(results).items()
        ),
    )


def _trials(results: FlatResults) -> Mapping[tuple[str, str], list[dict[str, Any]]]:
    trials: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for group, record in zip(results.groups, results.records, strict=True):
        trials.setdefault((group, record["setting"]), []).append(record)
    return trials
