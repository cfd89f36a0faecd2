"""A part of a report that answers one request of the study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from matplotlib.figure import Figure

from orchestrator.report.tables import TextTable


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure to be drawn."""

    name: str
    """File name without its ending."""
    caption: str
    draw: Callable[[], Figure] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Section:
    """What is shown of one answer."""

    key: str
    """Short and unique in a report: an anchor, and the start of its files' names."""
    heading: str
    findings: tuple[str, ...] = ()
    """What the numbers say, a sentence each."""
    tables: tuple[TextTable, ...] = ()
    terminal_tables: tuple[TextTable, ...] | None = None
    """What the terminal shows in place of `tables`, where these are long; None shows them."""
    method: str = ""
    """How the numbers were made, where the tables do not say it."""
    files: Mapping[str, Sequence[Sequence[Any]]] = field(default_factory=dict)
    """CSV file -> its lines, heading first, with every digit."""
    drawings: tuple[Drawing, ...] = ()

    def numbered(self, number: int) -> Section:
        """The same with a key and file names of its own."""
        return replace(
            self,
            key=f"{self.key}-{number}",
            files={f"{number}_{name}": lines for name, lines in self.files.items()},
            drawings=tuple(replace(drawing, name=f"{drawing.name}_{number}") for drawing in self.drawings),
        )
