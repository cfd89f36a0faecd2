"""What SECURITY.md names is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text()


def test_each_test_that_holds_a_promise_is_there() -> None:
    names = re.findall(r"`([a-z_/]+/test_\w+\.py)`", TEXT)
    assert len(names) > 10
    assert [name for name in names if not (ROOT / "tests" / name).is_file()] == []


def test_there_are_as_many_hostile_cases_as_it_says() -> None:
    [(files, said)] = re.findall(
        r"\(([^()]*hostile[^()]*): ([0-9,]+) cases under `make chaos`\)", TEXT
    )
    marks = [
        int(cases.replace("_", ""))
        for name in re.findall(r"`(.*?)`", files)
        for cases in re.findall(
            r"mark\.chaos\(\d+, ([0-9_]+)\)", (ROOT / "tests" / name).read_text()
        )
    ]
    assert marks
    assert sum(marks) == int(said.replace(",", ""))
