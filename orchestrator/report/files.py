"""The report's tables as CSV files, with every digit, for other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from orchestrator.analysis.comparison import ComparedCorrelation
from orchestrator.analysis.frames import FlatResults
from orchestrator.analysis.grid import Grid
from orchestrator.analysis.statistics.correlation import Coefficient
from orchestrator.analysis.summary import StudySummaryNumbers
from orchestrator.report.export import write_results
from trainables.trial_folder.files import write_file

TRIALS_FILE = "trials.csv"
COEFFICIENT_COLUMNS = ("", "_low", "_high", "_p")


def write_files(summary: StudySummaryNumbers, results: FlatResults, out: Path) -> None:
    """Write trials.csv, correlations.csv if there are any, and METRIC_over_ROW_COLUMN.csv of each grid into `out`."""
    trials = io.StringIO()
    write_results(results, "csv", trials)
    write_file(out / TRIALS_FILE, trials.getvalue().encode())
    if summary.correlations:
        write_csv(out / "correlations.csv", _correlation_lines(summary.correlations))
    for grid in summary.grids:
        write_csv(out / f"{grid.name}.csv", _grid_lines(grid))


def write_csv(path: Path, lines: Iterable[Sequence[Any]]) -> None:
    """Write lines, the heading first, as CSV."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(lines)
    write_file(path, stream.getvalue().encode())


def _correlation_lines(correlations: Sequence[ComparedCorrelation]) -> Iterable[Sequence[Any]]:
    corpora = list(dict.fromkeys(value.corpus for line in correlations for value in line.published))
    coefficients = [name + end for name in ("pearson", "spearman") for end in COEFFICIENT_COLUMNS]
    yield ["x", "y", "window_low", "window_high", "n", *coefficients, *(f"published_{name}" for name in corpora)]
    for line in correlations:
        bounds = (line.window.low, line.window.high) if line.window else (None, None)
        published = {value.corpus: value.value for value in line.published}
        ours = [*_numbers(line.pearson), *_numbers(line.spearman)]
        yield [line.x, line.y, *bounds, line.pearson.n, *ours, *(published.get(name) for name in corpora)]


def _numbers(found: Coefficient) -> list[float | None]:
    low, high = (found.interval.low, found.interval.high) if found.interval else (None, None)
    return [found.value, low, high, found.p_value]


def _grid_lines(grid: Grid) -> Iterable[Sequence[Any]]:
    yield [f"{grid.row} \\ {grid.column}", *grid.columns]
    for value, row in zip(grid.rows, grid.cells, strict=True):
        yield [value, *(cell.value for cell in row)]
