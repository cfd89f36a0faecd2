"""Fixtures of the whole suite, and its order: the longest files first, so that no process ends alone with one."""

from __future__ import annotations

import pytest

from tests.support.postgres import postgres_server, postgres_store, store_url, url

__all__ = ["postgres_server", "postgres_store", "store_url", "url"]
LONG = (
    "end_to_end/test_command.py",
    "end_to_end/test_all_studies.py",
    "end_to_end/test_measuring_later.py",
    "kills/test_schedule.py",
    "kills/test_tuning.py",
    "training/test_protocol.py",
    "measurements/test_spectrum.py",
    "kills/test_measuring.py",
    "end_to_end/test_custom_layer.py",
    "end_to_end/test_tuning.py",
)
"""A minute and more each, on two cores."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files of `LONG` first, everything else as it was."""
    items.sort(key=lambda item: next((place for place, name in enumerate(LONG) if _name(item) == name), len(LONG)))


def _name(item: pytest.Item) -> str:
    return "/".join(item.path.parts[-2:])
