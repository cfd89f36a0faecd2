"""Results as a table, CSV, JSON or Parquet, and a study as three Parquet files."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TextIO

from orchestrator.analysis import FlatResults, flatten
from orchestrator.watch import ShownConsole, for_reader
from orchestrator.words import json_document

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.store import Store, StudyKey

TextFormat = Literal["table", "csv", "json"]
WIDEST_TABLE = 1000
"""Line width, in characters, if the output is not a terminal. It is large so that no cell wraps."""


def write_results(
    results: FlatResults, form: TextFormat, stream: TextIO, first_metrics: Sequence[str] = ()
) -> None:
    """Write all trials to a text stream as `form`.

    csv: a line per trial, columns in the order of `results.columns`, missing values empty. json: a
    document with an object per trial, missing values null. table: the main columns, `first_metrics`
    first.
    """
    if form == "csv":
        writer = csv.writer(for_reader(stream), lineterminator="\n")
        writer.writerow(results.columns)
        writer.writerows(
            [plain(record[name]) for name in results.columns] for record in results.records
        )
    elif form == "json":
        stream.write(json_document("results", {"trials": results.records}) + "\n")
    else:
        from orchestrator.report.tables import trials_table
        from orchestrator.report.terminal import Fitting

        width = None if stream.isatty() else WIDEST_TABLE
        console = ShownConsole(file=stream, width=width)
        console.print(Fitting(table=trials_table(results, first_metrics, hashes=True)))


def write_archive(store: Store, key: StudyKey, folder: Path) -> None:
    """Write a study's trials as Parquet files into the folder `folder`.

    `trials.parquet` has one row per trial, `epochs.parquet` one per trial and epoch, and
    `spectra.parquet` one per trial, with its list of singular values.
    """
    trials = flatten(store.results(key)).of_variant(key)
    epochs = [
        {"trial_id": trial_id, **epoch.model_dump(), **epoch.numbers}
        for trial_id, of_trial in store.epochs_by_trial(key).items()
        for epoch in of_trial
    ]
    spectra = [
        {"trial_id": trial_id, "singular_values": sigma}
        for trial_id, sigma in store.spectra(key).items()
    ]
    write_parquet(trials.columns, trials.records, folder / "trials.parquet")
    names = dict.fromkeys(["trial_id", *(name for epoch in epochs for name in epoch)])
    write_parquet(list(names), epochs, folder / "epochs.parquet")
    write_parquet(["trial_id", "singular_values"], spectra, folder / "spectra.parquet")


def write_parquet(
    columns: Sequence[str], records: Sequence[Mapping[str, Any]], stream: BinaryIO | Path
) -> None:
    """Write `records` as Parquet, with the columns and missing values of the CSV and JSON files.

    A column is written as text if Parquet has no type for all its values.
    """
    import pyarrow as pa
    import pyarrow.parquet

    def column(values: list[Any]) -> pa.Array:
        try:
            return pa.array(values)
        except (ValueError, TypeError, OverflowError):  # includes Arrow's errors
            return pa.array([None if value is None else _as_text(value) for value in values])

    arrays = [column([plain(record.get(name)) for record in records]) for name in columns]
    pa.parquet.write_table(pa.table(arrays, names=list(map(_as_text, columns))), stream)


def _as_text(value: Any) -> str:
    """Escape lone surrogates, which UTF-8 cannot encode."""
    return str(value).encode(errors="backslashreplace").decode()


def plain(value: Any) -> Any:
    """Return a value for a cell of CSV or Parquet: lists, tuples and dicts become JSON text."""
    return json.dumps(value) if isinstance(value, (list, tuple, dict)) else value
