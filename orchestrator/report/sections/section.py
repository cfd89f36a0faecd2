"""A part of a report that answers one request of the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.report.columns import Table
from orchestrator.report.figures import Drawing
from orchestrator.report.tables import TextTable


@dataclass(frozen=True, kw_only=True)
class Section:
    """What is shown of one answer."""

    kind: str
    """Short: the section's anchor; the second of a kind and later ones end in their number."""
    heading: str
    findings: tuple[str, ...] = ()
    """What the numbers say, a sentence each: at the top of the page."""
    cautions: tuple[str, ...] = ()
    """What they do not say."""
    tables: tuple[Table, ...] = ()
    """What pages show and files hold."""
    remarks: tuple[str, ...] = ()
    """Sentences below the tables."""
    terminal: tuple[TextTable | str, ...] | None = None
    """What the terminal shows in place of `tables` and `findings`; None shows these."""
    method: str = ""
    """How the numbers were made, where the tables do not say it."""
    drawings: tuple[Drawing, ...] = ()
    wide: bool = True
    """Whether the figures lie below one another as wide as they are; else side by side, all
    alike."""

    @property
    def texts(self) -> tuple[TextTable, ...]:
        """The tables that a page shows."""
        return tuple(table.text() for table in self.tables if table.shown and len(table.frame))

    @property
    def written(self) -> Mapping[str, Sequence[Sequence[Any]]]:
        """CSV file -> its lines, heading first, with every digit."""
        return {
            table.file: table.lines()
            for table in self.tables
            if table.file and len(table.frame.columns)
        }

    @property
    def for_terminal(self) -> tuple[TextTable | str, ...]:
        """What the terminal shows."""
        if self.terminal is not None:
            return self.terminal
        return (*self.texts, *(["\n".join(self.findings)] if self.findings else []))

    def numbered(self, number: int) -> Section:
        """The same with a key and file names of its own."""
        tables = [
            replace(table, file=table.file and f"{number}_{table.file}") for table in self.tables
        ]
        drawings = [replace(one, name=f"{one.name}_{number}") for one in self.drawings]
        kind = f"{self.kind}-{number}"
        return replace(self, kind=kind, tables=tuple(tables), drawings=tuple(drawings))


NOTHING = Section(kind="", heading="")
"""The section of a question that no trial answers yet."""
