"""The results of a study in four formats: a table to read, CSV, JSON and Parquet to go on with."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TextIO, get_args

from orchestrator.analysis import FlatResults
from orchestrator.watch import ShownConsole, for_reader
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
    if form == "csv":
        writer = csv.writer(for_reader(stream), lineterminator="\n")
        writer.writerow(results.columns)
        writer.writerows([plain(record[name]) for name in results.columns] for record in results.records)
    elif form == "json":
        json.dump(list(results.records), stream, indent=1, allow_nan=False)
        stream.write("\n")
    elif form == "table":
        _write_table(results, stream, first_metrics)
    elif form == "parquet":
        raise UserError("parquet is a binary format, which needs a file: redirect the output into one")
    else:
        raise UserError(f"a results format must be one of {', '.join(FORMATS)}, got {form!r}")


def write_parquet(results: FlatResults, stream: BinaryIO | Path) -> None:
    """Write all trials as Parquet, with the columns and the null values of the CSV and JSON forms; what has no type in
    common, or none that Parquet has, as text."""
    import pyarrow as pa
    import pyarrow.parquet

    def column(values: list[Any]) -> pa.Array:
        try:
            return pa.array(values)
        except (ValueError, TypeError, OverflowError):  # Arrow's own are among these
            return pa.array([None if value is None else _as_text(value) for value in values])

    names = map(_as_text, results.columns)
    columns = [column([plain(record[name]) for record in results.records]) for name in results.columns]
    pa.parquet.write_table(pa.table(columns, names=list(names)), stream)


def _as_text(value: Any) -> str:
    """Halves of characters are spelled out: no file has them."""
    return str(value).encode(errors="backslashreplace").decode()


def _write_table(results: FlatResults, stream: TextIO, first_metrics: Sequence[str]) -> None:
    from orchestrator.report.tables import trials_table
    from orchestrator.report.terminal import Fitting

    width = None if stream.isatty() else WIDEST_TABLE
    shown = ShownConsole(file=stream, width=width)
    shown.print(Fitting(table=trials_table(results, first_metrics, hashes=True)))


def plain(value: Any) -> Any:
    """Lists and the like as JSON text: a column of CSV or Parquet holds one plain value a trial."""
    return json.dumps(value) if isinstance(value, (list, tuple, dict)) else value
