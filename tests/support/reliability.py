"""What rounds of `make chaos` came to; `python -m tests.support.reliability` puts it into
docs/reliability.md.

A round is a line, written once it is over: a run that is interrupted has its rounds, and the next
one adds to them."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tests.support.command import ROOT

PAGE = ROOT / "docs" / "reliability.md"
ROUNDS = ROOT / "results" / "chaos"
START, END = "<!-- figures -->", "<!-- end of figures -->"
Part = Mapping[str, Any]
"""A round as its file has it."""


def keep_round(name: str, part: Any) -> None:
    """Add a round, a dataclass with `kind` and `troubles`, to those of its check."""
    ROUNDS.mkdir(parents=True, exist_ok=True)
    commit = _git("rev-parse", "--short", "HEAD") + (
        " with changes" if _git("status", "--porcelain", "-uno") else ""
    )
    with (ROUNDS / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps({"commit": commit, **asdict(part)}) + "\n")


def spread(seconds: Iterable[float | None]) -> str:
    """Median, 90th percentile and maximum."""
    values = sorted(value for value in seconds if value is not None)
    if not values:
        return "none"
    high = values[min(len(values) - 1, int(0.9 * len(values)))]
    return f"{statistics.median(values):.1f} / {high:.1f} / {values[-1]:.1f}"


def counts(values: Iterable[object]) -> str:
    """ "1: 20, 2: 3": how often what."""
    texts = [str(value) for value in values]
    return ", ".join(f"{value}: {texts.count(value)}" for value in sorted(set(texts)))


def of_kills(parts: Sequence[Part]) -> dict[str, object]:
    """One kind of kill."""

    def having(word: str) -> int:
        return sum(any(trouble.startswith(word) for trouble in part["troubles"]) for part in parts)

    return {
        **{
            word: having(word)
            for word in ("hung", "another table", "lost", "trained twice", "left behind")
        },
        "began anew": having("began anew"),
        "went on from a checkpoint": sum(part["went_on"] for part in parts),
        "claimed again (times a round: rounds)": counts(part["claimed_again"] for part in parts),
        "commands typed (rounds)": counts(part["commands"] for part in parts),
        "s to the command's end (median / 90% / most)": spread(part["ended_s"] for part in parts),
    }


def of_signals(parts: Sequence[Part]) -> dict[str, object]:
    """One kind of signal."""
    return {
        "in a terminal": sum(part["terminal"] for part in parts),
        "s to the answer (median / 90% / most)": spread(part["answered_s"] for part in parts),
        "s to the end (median / 90% / most)": spread(part["out_s"] for part in parts),
        "ended at once": sum(part["at_once"] for part in parts),
        "status": counts(part["status"] for part in parts),
    }


def of_hogs(parts: Sequence[Part]) -> dict[str, object]:
    """All hogs."""
    return {"s to the end (median / 90% / most)": spread(part["ended_s"] for part in parts)}


def of_searches(parts: Sequence[Part]) -> dict[str, object]:
    """All searches."""
    return {"kills": sum(part["kills"] for part in parts)}


CHECKS: dict[str, tuple[str, Callable[[Sequence[Part]], dict[str, object]]]] = {
    "random-kills": ("SIGKILL at a random moment", of_kills),
    "named-steps": ("SIGKILL between two durable writes", of_kills),
    "signals": ("Signals at a random moment", of_signals),
    "four-commands": ("Four commands at once, the driver of one killed", lambda _: {}),
    "memory-hogs": ("Another program takes the memory at a random moment", of_hogs),
    "searches": ("A search whose command is killed over and over", of_searches),
}


def section(name: str) -> list[str]:
    """The lines of one check: a table with a row a kind; none where it was not done."""
    path, (title, columns_of) = ROUNDS / f"{name}.jsonl", CHECKS[name]
    if not path.exists():
        return []
    parts = [json.loads(line) for line in path.read_text().splitlines()]
    rows = []
    for kind in sorted({part["kind"] for part in parts}):
        some = [part for part in parts if part["kind"] == kind]
        wrong = sum(bool(part["troubles"]) for part in some)
        rows.append(
            {
                "what": kind,
                "rounds": f"{len(some)} of {len(parts)}",
                **columns_of(some),
                "not as promised": wrong,
            }
        )
    commits = counts(part["commit"] for part in parts)
    cells = [
        list(rows[0]),
        ["---"] * len(rows[0]),
        *([str(value) for value in row.values()] for row in rows),
    ]
    table = [f"| {' | '.join(row)} |" for row in cells]
    slow = spread(part.get("slowness") for part in parts)
    about = f"Rounds by commit: {commits}; {os.cpu_count()} cores; slower than a quiet machine by {slow} times."
    return [f"### {title}", "", about, "", *table, ""]


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(START)
    lines = [line for name in CHECKS for line in section(name)]
    PAGE.write_text("\n".join([f"{before}{START}", "", *lines, f"{END}{rest.partition(END)[2]}"]))
