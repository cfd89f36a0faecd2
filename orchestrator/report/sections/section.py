"""The part of a report that answers one request of the study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd

from orchestrator.report.columns import Table
from orchestrator.report.figures import Drawing
from orchestrator.report.findings import Finding
from orchestrator.report.tables import TextTable


@dataclass(frozen=True, kw_only=True)
class Section:
    """Everything that pages, terminal and files show of one answer."""

    kind: str
    """Anchor on the page; the second section of a kind ends in "-2"."""
    heading: str
    findings: tuple[Finding, ...] = ()
    cautions: tuple[str, ...] = ()
    """Sentences about the limits of the numbers."""
    tables: tuple[Table, ...] = ()
    claim: str = ""
    """Sentence on what others claim."""
    method: str = ""
    """How the numbers were made, if the tables do not show it."""
    drawings: tuple[Drawing, ...] = ()
    wide: bool = True
    """Draw figures at full width; otherwise side by side."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return the findings in words."""
        return tuple(finding.sentence for finding in self.findings)

    @property
    def texts(self) -> tuple[TextTable, ...]:
        """Return the tables that a page shows."""
        return tuple(table.text() for table in self.tables if table.columns and len(table.frame))

    @property
    def written(self) -> Mapping[str, pd.DataFrame]:
        """Return the content of each CSV file, by file name."""
        return {
            table.file: table.frame.rename(columns=table.names)
            for table in self.tables
            if table.file and len(table.frame.columns)
        }

    def numbered(self, number: int) -> Section:
        """Return a copy whose kind and file names include this number."""
        tables = [
            replace(table, file=table.file and f"{number}_{table.file}") for table in self.tables
        ]
        drawings = [replace(one, name=f"{one.name}_{number}") for one in self.drawings]
        kind = f"{self.kind}-{number}"
        return replace(self, kind=kind, tables=tuple(tables), drawings=tuple(drawings))


NOTHING = Section(kind="", heading="")
"""Section of a question that no trial answers yet."""
