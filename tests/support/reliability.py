"""Rounds of `make chaos`: each is a line of results/chaos.jsonl, written once it is over.

`python -m tests.support.reliability` prints them as a table for docs/reliability.md."""

from __future__ import annotations

import json
import statistics
import subprocess
from dataclasses import asdict
from itertools import groupby

from tests.support.command import ROOT
from tests.support.typed_sweep import Round

ROUNDS = ROOT / "results" / "chaos.jsonl"


def keep_round(check: str, part: Round) -> None:
    """Add a round to those of its check."""
    ROUNDS.parent.mkdir(parents=True, exist_ok=True)
    git = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    with ROUNDS.open("a") as file:
        file.write(
            json.dumps({"check": check, "commit": git.stdout.strip(), **asdict(part)}) + "\n"
        )


def main() -> None:
    """Print a line for each check and kind."""
    print("| check | what | rounds | not as promised | s to the end, median / most | commits |")
    print("| --- | --- | --- | --- | --- | --- |")
    parts = [json.loads(line) for line in ROUNDS.read_text().splitlines()]
    parts.sort(key=lambda part: (part["check"], part["kind"]))
    for (check, kind), group in groupby(parts, lambda part: (part["check"], part["kind"])):
        rounds = list(group)
        wrong = sum(bool(part["troubles"]) for part in rounds)
        seconds = [part["seconds"] for part in rounds if part["seconds"] is not None]
        spread = f"{statistics.median(seconds):.1f} / {max(seconds):.1f}" if seconds else ""
        commits = ", ".join(sorted({part["commit"] for part in rounds}))
        print(f"| {check} | {kind} | {len(rounds)} | {wrong} | {spread} | {commits} |")


if __name__ == "__main__":
    main()
