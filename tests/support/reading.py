"""Run each command that only reads: `python -m tests.support.reading STORAGE FILE`."""

from __future__ import annotations

import json
import sys

from tests.support.command import sweep

COMMANDS = (
    *("studies", "status", "status own", "results own", "results gss_grid --format csv"),
    *("report gss_grid --format json", "store check", "rank {file}", "rank {file} --method qr"),
)


def answers(storage: str, file: str) -> dict[str, str]:
    """Return the output of each command, and the data frames as CSV. All must succeed."""
    from orchestrator import epochs, results, spectra

    printed = {}
    for command in COMMANDS:
        words = command.format(file=file).split()
        stored = () if words[0] in ("studies", "rank") else ("--storage", storage)
        answer = sweep(*words, *stored)
        assert answer.returncode == 0, f"{command}: {answer.stderr}"
        printed[command] = answer.stdout
    frames = {frame.__name__: frame for frame in (results, epochs, spectra)}
    return {**printed, **{name: frame(storage=storage).to_csv() for name, frame in frames.items()}}


if __name__ == "__main__":
    json.dump(answers(*sys.argv[1:]), sys.stdout)
