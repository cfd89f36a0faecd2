"""Records in the form that was typed after --format."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.command.options import console
from trainables.errors import UserError

FORMATS = ("table", "csv", "json")
Record = Mapping[str, Any]


def check_format(form: str, formats: Sequence[str] = FORMATS) -> None:
    """Raise UserError for a format that there is not."""
    if form not in formats:
        raise UserError(f"--format is one of {', '.join(formats)}; got {form!r}")


def print_records(records: Sequence[Record], columns: Mapping[str, str], form: str) -> None:
    """Print records; `columns` maps keys to the headings of the table form, csv and json keep the keys."""
    check_format(form)
    if form == "json":
        print(json.dumps([dict(record) for record in records], indent=1))
    elif form == "csv":
        writer = csv.DictWriter(sys.stdout, list(columns), lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(records)
    else:
        from orchestrator.report import Cell, Fitting, TextTable

        body = tuple(
            tuple(Cell(str(value), number=value if isinstance(value, int) else None) for value in line)
            for line in ([record[key] for key in columns] for record in records)
        )
        console().print(Fitting(table=TextTable(caption="", head=tuple(columns.values()), body=body)))
