"""A check: what is printed, what comes out, the rule that decides, and the verdict on which printed
numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from search_spaces.published import Row, rows

Verdict = Literal["agrees", "compatible", "explained", "differs", "open"]
"""agrees: the printed value comes out. compatible: it lies inside what other printed values leave
open, which a wrong one could do as well. explained: it does not come out, and need not, for a
reason that the rule says. differs: it does not come out. open: what it takes is not here."""

FEW = 3
"""Points that give the order or the sign which is printed by chance alone too often to say much."""
PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
CORPORA = {"ptb": "PTB", "wikitext-2": "WikiText-2"}
MODELS = {
    "softmax": "softmax",
    "sigsoftmax": "SigSoftmax",
    "gss": "GSS",
    "lms_plif": "LMS-PLIF",
    "mos": "MoS",
    "moc": "MoC",
    "mos_dagger": "MoS\N{DAGGER}",
    "softmax_double_dagger": "Softmax\N{DOUBLE DAGGER}",
    "lms_plif_1e5": "LMS-PLIF with 100,000 knots",
    "mos_15": "MoS, K = 15",
    "mos_15_plif_1e6": "MoS-PLIF with 1,000,000 knots",
}
"""Models as the papers write them, by their names in the tables' files."""
AVERAGING = {"et_asgd": "ET-ASGD", "nt_asgd": "NT-ASGD"}
TITLES = {
    "ganea_language_modelling": ("the talk", "the talk"),
    "sm_section5_press_rank": ("SM 5.1", ""),
    "sm_table10_11_averaging": ("SM Table 10", "SM Table 11"),
    "sm_table12_mos_dropout": ("SM Table 12", "SM Table 12"),
    "sm_table1_significance": ("SM Table 1", "SM Table 1"),
    "sm_table4_5_mos_k": ("SM Table 4", "SM Table 5"),
    "table2_seeds": ("Table 2", "Table 2"),
    "table4_plif_vs_frozen": ("Table 4", "Table 4"),
    "table5_fair_capacity": ("Table 5", ""),
    "table6_rank_metrics": ("Table 6", "Table 6"),
}
"""What the papers call a table's part of PTB and that of WikiText-2."""


@dataclass(frozen=True, order=True)
class PrintedNumber:
    """A cell of a published table: the file's name, the line (0 for the first below the heading),
    the column."""

    table: str
    line: int
    column: str

    @property
    def row(self) -> Row:
        """The cells of its line."""
        return rows(self.table)[self.line]

    @property
    def text(self) -> str:
        """As the data have it."""
        return self.row[self.column]

    @property
    def value(self) -> float:
        """As a number."""
        return float(self.text)

    @property
    def as_printed(self) -> str:
        """As the paper has it: the data drop the last zero of a perplexity."""
        return f"{self.value:.2f}" if "ppl" in self.column or "_test_" in self.column else self.text

    @property
    def corpus(self) -> str:
        """Table 5 is about PTB alone."""
        return self.row.get("corpus", "ptb")

    @property
    def title(self) -> str:
        """Of its table, with the rule of averaging where it has one: "SM Table 10, ET-ASGD"."""
        title = TITLES[self.table][list(CORPORA).index(self.corpus)]
        return f"{title}, {AVERAGING[self.row['averaging']]}" if "averaging" in self.row else title

    @property
    def source(self) -> str:
        """Which table, corpus and model: "Table 2, PTB, MoS"."""
        model = self.row.get("model")
        return f"{self.title}, {CORPORA[self.corpus]}" + (f", {MODELS[model]}" if model else "")

    def beside(self, column: str) -> PrintedNumber:
        """Another number of its line."""
        return PrintedNumber(self.table, self.line, column)

    @property
    def deviation(self) -> PrintedNumber:
        """Of a mean."""
        return self.beside(f"{self.column.removesuffix('mean')}sd")


@dataclass(frozen=True, kw_only=True)
class Check:
    """A printed statement held against what follows from other printed numbers, from configs or
    from files."""

    source: str
    """Which table, corpus and model, or which sentence."""
    quantity: str
    printed: str
    recomputed: str
    rule: str
    """What was computed and what decided."""
    verdict: Verdict
    covers: tuple[PrintedNumber, ...] = ()
    """What the verdict is about; nothing for a sentence of the paper's text."""
    uses: tuple[PrintedNumber, ...] = ()
    """What went in and is not judged by it."""


def decided(comes_out: bool, *, weakly: bool = False) -> Verdict:
    """The verdict on what comes out or does not; `weakly`: another value would have come out as
    well."""
    if not comes_out:
        return "differs"
    return "compatible" if weakly else "agrees"


def column_of(table: str, column: str) -> tuple[PrintedNumber, ...]:
    """The numbers of a column from top to bottom, without empty cells."""
    return tuple(
        PrintedNumber(table, line, column) for line, row in enumerate(rows(table)) if row[column]
    )


def look(table: str, column: str, **keys: str) -> PrintedNumber:
    """The number of the one line whose columns are `keys`. Raises LookupError where that is not one
    with a value."""
    lines = [
        line
        for line, row in enumerate(rows(table))
        if all(row[key] == value for key, value in keys.items())
    ]
    if len(lines) != 1 or not rows(table)[lines[0]][column]:
        raise LookupError(f"{table} has {len(lines)} lines with {keys}, or nothing in {column}")
    return PrintedNumber(table, lines[0], column)


def same(
    source: str, quantity: str, one: PrintedNumber, second: PrintedNumber, *, beside: str
) -> Check:
    """A number that is printed in two tables; `beside` names the second."""
    return Check(
        source=source,
        quantity=quantity,
        printed=one.as_printed,
        recomputed=second.as_printed,
        rule=f"the same number in {beside}, digit by digit",
        verdict=decided(one.value == second.value),
        covers=(one, second),
    )


def with_deviations(means: Iterable[PrintedNumber]) -> tuple[PrintedNumber, ...]:
    """Means, and the deviation behind each."""
    return tuple(number for mean in means for number in (mean, mean.deviation))
