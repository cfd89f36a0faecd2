"""The page of `published`: counts that say what they count, and names that a reader of the papers knows."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from orchestrator.analysis.audit import audit_numbers
from orchestrator.report.sections.audit import audit_section
from orchestrator.report.sections.section import Section


@pytest.fixture(scope="module")
def section() -> Section:
    return audit_section(audit_numbers(pd.DataFrame({"trial_id": []})))


def test_the_count_of_numbers_says_that_it_is_not_one_of_checks(section: Section) -> None:
    assert "compatible (which includes bounds that a wrong number could pass as well)" in section.findings[0]
    assert "print 832 numbers" in section.findings[-1]
    assert "a check may involve several, on both sides of a difference" in section.findings[-1]


def test_no_name_of_the_program_is_shown(section: Section) -> None:
    shown = [cell.text for table in section.tables for row in table.body for cell in row]
    assert not [text for text in (*shown, *section.findings) if re.search(r"[a-z]_[a-z0-9]", text)]
    [_, account] = section.tables
    assert account.body[0][0].text == "Fig. 2, GSS"
