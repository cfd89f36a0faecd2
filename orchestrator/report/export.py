"""The results of a study in four formats: a table to read, CSV, JSON and Parquet to go on with."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TextIO, get_args

from orchestrator.analysis import FlatResults
from trainables.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

ResultsFormat = Literal["table", "csv", "json", "parquet"]
WIDEST_TABLE = 1000
"""Characters a line where there is no terminal whose width would matter: nothing is cut or wrapped."""
FORMATS: tuple[ResultsFormat, ...] = get_args(ResultsFormat)


def write_results(results: FlatResults, form: ResultsFormat, stream: TextIO, first_metrics: Sequence[str] = ()) -> None:
    """Write all trials to a text stream as `form`.

    csv: one line a trial, columns in the order of `results.columns`, nothing where there is no value. json: one array
    with an object a trial, null where there is no value. table: the main columns only,
    `first_metrics` before the others. Raises UserError for parquet, which is no text, and for an unknown format.
    """
    writers: dict[str, Callable[[FlatResults, TextIO], None]] = {
        "table": partial(_write_table, first_metrics),
        "csv": _write_csv,
        "json": _write_json,
    }
    if form == "parquet":
        raise UserError("parquet is a binary format, which needs a file: redirect the output into one")
    if form not in writers:
        raise UserError(f"a results format must be one of {', '.join(FORMATS)}, got {form!r}")
    writers[form](results, stream)


def write_parquet(results: FlatResults, stream: BinaryIO | Path) -> None:
    """Write all trials as Parquet, with the columns and the null values of the CSV and JSON forms."""
    import pyarrow as pa
    import pyarrow.parquet

    columns = {name: pa.array([_plain(record[name]) for record in results.records]) for name in results.columns}
    pa.parquet.write_table(pa.table(columns), stream)


def _write_table(first_metrics: Sequence[str], results: FlatResults, stream: TextIO) -> None:
    from rich.console import Console

    from orchestrator.report.tables import trials_table
    from orchestrator.report.terminal import Fitting

    width = None if stream.isatty() else WIDEST_TABLE
    Console(file=stream, width=width).print(Fitting(table=trials_table(results, first_metrics)))


def _write_csv(results: FlatResults, stream: TextIO) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(results.columns)
    writer.writerows([_plain(record[name]) for name in results.columns] for record in results.records)


def _write_json(results: FlatResults, stream: TextIO) -> None:
    json.dump(list(results.records), stream, indent=1, allow_nan=False)
    stream.write("\n")


def _plain(value: Any) -> Any:
    """Lists and the like as JSON text: CSV and Parquet columns hold one plain value a trial."""
    return json.dumps(value) if isinstance(value, (list, tuple, dict)) else value
