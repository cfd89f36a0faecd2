"""What `make chaos` saw, as files; `python -m tests.support.reliability` puts them into docs/reliability.md."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.support.command import ROOT

PAGE = ROOT / "docs" / "reliability.md"
SUMMARIES = Path(os.environ.get("CHAOS_SUMMARIES", ROOT / "results" / "chaos"))
START, END = "<!-- figures -->", "<!-- end of figures -->"
Row = Mapping[str, object]


def write_summary(name: str, title: str, rows: Sequence[Row], note: str = "") -> None:
    """Keep what a test of chance saw: a table with a row a kind of thing that was done."""
    SUMMARIES.mkdir(parents=True, exist_ok=True)
    commit = _git("rev-parse", "--short", "HEAD") + ("" if _git("status", "--porcelain") == "" else ", with changes")
    content = {"title": title, "commit": commit, "cores": os.cpu_count(), "note": note, "rows": list(rows)}
    (SUMMARIES / f"{name}.json").write_text(json.dumps(content, indent=1))


def spread(seconds: Iterable[float]) -> str:
    """Median, 90th percentile and maximum."""
    values = sorted(seconds)
    if not values:
        return "none"
    high = values[min(len(values) - 1, int(0.9 * len(values)))]
    return f"{statistics.median(values):.1f} / {high:.1f} / {values[-1]:.1f}"


def counts(values: Iterable[object]) -> str:
    """ "1: 20, 2: 3": how often what."""
    texts = [str(value) for value in values]
    return ", ".join(f"{value}: {texts.count(value)}" for value in sorted(set(texts))) or "none"


def markdown() -> str:
    """Every summary as a section with a table."""
    lines: list[str] = []
    for path in sorted(SUMMARIES.glob("*.json")):
        content = json.loads(path.read_text())
        columns = list(content["rows"][0])
        table = [
            columns,
            ["---"] * len(columns),
            *([str(row[column]) for column in columns] for row in content["rows"]),
        ]
        lines += [
            f"### {content['title']}",
            "",
            f"Commit {content['commit']}, {content['cores']} cores. {content['note']}",
        ]
        lines += ["", *(f"| {' | '.join(row)} |" for row in table), ""]
    return "\n".join(lines)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(START)
    PAGE.write_text(f"{before}{START}\n\n{markdown()}\n{END}{rest.partition(END)[2]}")
