"""No printed number is left out: the account's totals are those of the files, counted another way."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from orchestrator.analysis.audit import audit_numbers
from orchestrator.analysis.audit.account import account
from orchestrator.analysis.audit.check import Check, PrintedNumber
from search_spaces import published

NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")
SHARED = Path(__file__).parents[4].parent / "shared" / "paper"


def counted_by_hand(path: Path) -> int:
    """Numbers of a CSV file's text: all fields but those of the heading and of the column `stage`, split at blanks."""
    heading, *lines = path.read_text().splitlines()
    leave_out = heading.split(",").index("stage") if "stage" in heading.split(",") else None
    words = []
    for line in lines:
        fields = re.findall(r'(?:^|,)("[^"]*"|[^,]*)', line)
        words += [word for i, field in enumerate(fields) if i != leave_out for word in field.split()]
    return sum(NUMBER.fullmatch(word) is not None for word in words)


def test_the_account_has_every_number_of_every_table_once() -> None:
    lines = {line.table: line for line in audit_numbers(pd.DataFrame({"trial_id": []})).account}
    files = sorted(published.FOLDER.glob("*.csv"))
    assert list(lines) == [path.stem for path in files] and len(files) == 17
    for path in files:
        assert lines[path.stem].numbers == counted_by_hand(path) > 0, path.stem
    assert sum(line.numbers for line in lines.values()) == 832


@pytest.mark.skipif(not SHARED.is_dir(), reason="no ../shared/paper")
def test_the_project_has_every_table_that_there_is() -> None:
    for path in SHARED.glob("*.csv"):
        packaged = published.FOLDER / path.name
        assert packaged.exists() and packaged.read_text().split() == path.read_text().split(), path.name


def test_the_first_fate_that_applies_counts() -> None:
    place = PrintedNumber("table2_seeds", 0, "rank_mean")

    def check(**fields: object) -> Check:
        return Check(source="", quantity="", printed="", recomputed="", rule="", **fields)  # type: ignore[arg-type]

    def fate(*checks: Check) -> str:
        [line] = [line for line in account(checks) if line.table == place.table]
        return next(name for name, count in line.counts.items() if count == 1)

    used = check(verdict="agrees", uses=(place,))
    agrees, differs = (check(verdict=verdict, covers=(place,)) for verdict in ("agrees", "differs"))
    assert (fate(used), fate(used, agrees), fate(differs, agrees)) == ("used", "agrees", "differs")
    with pytest.raises(LookupError, match="cells without a number"):
        account([check(verdict="agrees", covers=(PrintedNumber("table2_seeds", 0, "model"),))])
