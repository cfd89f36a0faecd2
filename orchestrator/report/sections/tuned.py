"""The tuning behind a comparison: how much each side was tried, and with what it went on."""

from __future__ import annotations

from orchestrator.analysis.tuned import TunedNumbers
from orchestrator.report import formats
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import DASH, Cell, TextTable

HEAD = ("side", "stage 1", "stage 2", "stopped early", "validation perplexity", "best setting")
METHOD = (
    "Settings are as at the paper's scale: dem dropout of the embedding matrix, de of the embedding output, dh between "
    "LSTM layers, do of the last one, noise on the embedding output, wd weight decay. The best of many trials looks "
    "better than it is, which is why the comparison is over new seeds of it."
)


def tuned_section(numbers: TunedNumbers) -> Section:
    """The table of a Tuned request."""
    body = tuple(
        (
            Cell(side.side, kind="name"),
            *(Cell(str(count), number=count) for count in (side.stage1, side.stage2, side.pruned)),
            Cell(formats.cell("valid_perplexity", side.valid_perplexity), number=side.valid_perplexity),
            Cell((side.best or DASH).removeprefix(f"{side.side} ")),
        )
        for side in numbers.sides
    )
    lines = [[cell.text if cell.number is None else cell.number for cell in line] for line in body]
    return Section(
        kind="tuning",
        heading="The tuning",
        tables=(TextTable(caption="Trials of each side, and the best of them", head=HEAD, body=body),),
        method=METHOD,
        files={"tuning.csv": [list(HEAD), *lines]},
    )
