"""Log of the rounds of `make chaos`.

Each round appends one line to results/chaos.jsonl. `python -m tests.kills.reliability` prints these
lines as the table in docs/reliability.md.
"""

from __future__ import annotations

import json
from dataclasses import asdict

import pandas as pd

from tests.kills.typed_sweep import Round
from tests.support.command import ROOT
from trainables.trial_folder import code_version

ROUNDS = ROOT / "results" / "chaos.jsonl"


def keep_round(check: str, part: Round) -> None:
    ROUNDS.parent.mkdir(parents=True, exist_ok=True)
    line = {"check": check, "commit": code_version(), **asdict(part)}
    with ROUNDS.open("a") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    rounds = pd.read_json(ROUNDS, lines=True)
    rounds["wrong"] = rounds.troubles.str.len() > 0
    grouped = rounds.groupby(["check", "kind"]).agg(
        rounds=("wrong", "size"),
        wrong=("wrong", "sum"),
        median_s=("seconds", "median"),
        most_s=("seconds", "max"),
        commits=("commit", "unique"),
    )
    print(grouped.to_csv(sep="|", float_format="%.1f"))
