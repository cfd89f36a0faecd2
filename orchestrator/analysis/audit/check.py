"""One recomputed number: what is printed, what comes out, the rule that decides, and whose verdict it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from search_spaces.published import rows

Verdict = Literal["agrees", "compatible", "explained", "differs", "open"]
"""agrees: the printed value comes out. compatible: it lies inside what other printed values leave open, which a wrong
one could do as well. explained: it does not come out, and need not, for a reason that the rule says. differs: it does
not come out. open: what it takes is not here."""

FEW = 3
"""Points that give the order or the sign which is printed by chance alone too often to say much."""
PERPLEXITY_ROUNDING = 0.005
"""Half a unit of the last digit that the AAAI paper prints of a perplexity and of its deviation."""
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


@dataclass(frozen=True, order=True)
class Place:
    """A cell of a published table: the file's name, the line (0 for the first below the heading), the column."""

    table: str
    line: int
    column: str


@dataclass(frozen=True, kw_only=True)
class Printed:
    """A printed number and where it stands."""

    place: Place
    text: str

    @property
    def value(self) -> float:
        """As a number."""
        return float(self.text)

    @property
    def shown(self) -> str:
        """As the paper has it: the data drop the last zero of a perplexity."""
        return f"{self.value:.2f}" if "ppl" in self.place.column or "_test_" in self.place.column else self.text


@dataclass(frozen=True, kw_only=True)
class Check:
    """A printed statement held against what follows from other printed numbers, from configs or from files."""

    source: str
    """Which table, corpus and model: "Table 2, PTB, mos"."""
    what: str
    printed: str
    recomputed: str
    rule: str
    """What was computed and what decided."""
    verdict: Verdict
    covers: tuple[Place, ...] = ()
    """The printed numbers that the verdict is about; none for a sentence of the paper's text."""
    uses: tuple[Place, ...] = ()
    """Printed numbers that went in and are not judged by it."""


def decided(comes_out: bool, *, weakly: bool) -> Verdict:
    """The verdict on what comes out or does not; `weakly`: another value would have come out as well."""
    if not comes_out:
        return "differs"
    return "compatible" if weakly else "agrees"


def look(table: str, column: str, **keys: str) -> Printed:
    """The cell of the one line whose columns are `keys`. Raises LookupError where that is not one line with a value."""
    found = [
        (line, row) for line, row in enumerate(rows(table)) if all(row[key] == value for key, value in keys.items())
    ]
    if len(found) != 1 or not found[0][1][column]:
        raise LookupError(f"{table} has {len(found)} lines with {keys}, or nothing in {column}")
    [(line, row)] = found
    return Printed(place=Place(table, line, column), text=row[column])


def places(numbers: Sequence[Printed]) -> tuple[Place, ...]:
    """Where they stand."""
    return tuple(number.place for number in numbers)


def same(source: str, what: str, one: Printed, other: Printed, *, beside: str) -> Check:
    """A number that is printed in two tables; `beside` names the other one."""
    return Check(
        source=source,
        what=what,
        printed=one.shown,
        recomputed=other.shown,
        rule=f"the same number in {beside}, digit by digit",
        verdict="agrees" if one.value == other.value else "differs",
        covers=(one.place, other.place),
    )
