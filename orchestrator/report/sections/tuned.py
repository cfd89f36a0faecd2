"""The tuning behind a comparison: how much each side was tried, and with what it went on."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.analysis import TunedSide
from orchestrator.report import formats
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import DASH, Cell, text_table

HEAD = ("side", "stage 1", "stage 2", "stopped early", "validation perplexity", "best setting")


def tuned_section(sides: Sequence[TunedSide]) -> Section:
    """The table of a Tuned request."""
    table = text_table(
        "Trials of each side, and the best of them",
        HEAD,
        (
            (
                *(side.side, side.stage1, side.stage2, side.pruned),
                Cell(formats.cell("valid_perplexity", side.valid_perplexity), side.valid_perplexity),
                Cell((side.best or DASH).removeprefix(f"{side.side} ")),
            )
            for side in sides
        ),
    )
    lines: list[Sequence[object]] = [
        [cell.text if cell.number is None else cell.number for cell in row] for row in table.body
    ]
    files = {"tuning.csv": [HEAD, *lines]}
    return Section(kind="tuning", heading="The tuning", tables=(table,), method=prose("method_tuning.txt"), files=files)
