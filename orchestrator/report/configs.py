"""Table of the full settings that a report's short labels abbreviate."""

from __future__ import annotations

from typing import Any

from orchestrator.analysis import ID_DIGITS, FlatResults, tidy
from orchestrator.report.columns import Column, Table
from orchestrator.report.export import plain


def configs_table(results: FlatResults) -> Table:
    """Return a table with one row per setting of a group.

    A row has the label, the setting's hash, the number of trials and their ids. The CSV file adds
    the config values that differ between trials, except the seed.
    """
    varying = [name for name in results.varying if name != "seed"]
    trials: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for group, record in zip(results.groups, results.records, strict=True):
        trials.setdefault((group, record["setting"]), []).append(record)
    return Table(
        caption="The setting that each label names: a config without its seed",
        frame=tidy(
            {
                "group": group,
                "setting": setting,
                "trials": len(members),
                "done": sum(trial["state"] == "done" for trial in members),
                "trial_ids": " ".join(trial["trial_id"] for trial in members),
                **{name: plain(members[0][name]) for name in varying},
            }
            for (group, setting), members in trials.items()
        ),
        columns=[
            ("group", Column("label")),
            "setting",
            "trials",
            (
                "trial_ids",
                Column("ids", lambda ids: " ".join(one[:ID_DIGITS] for one in ids.split())),
            ),
        ],
        file="configs.csv",
    )
