"""The order of test files: the longest first, so that no process is left alone with one at the end."""

from __future__ import annotations

import pytest

LONG = (
    "test_command.py",
    "test_all_studies.py",
    "test_later_command.py",
    "test_interrupted_schedule.py",
    "test_killed_tuning.py",
    "test_protocol.py",
    "test_spectrum.py",
    "test_interrupted_remeasure.py",
    "test_own_layer.py",
    "test_tuning_command.py",
)
"""A minute and more each, on two cores."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files of `LONG` first, everything else as it was."""
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))
