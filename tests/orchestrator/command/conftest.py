from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.command import sweep

Typed = Callable[..., CompletedProcess[str]]


@pytest.fixture
def typed(tmp_path: Path) -> Typed:
    return lambda *words: sweep(*words, "--storage", tmp_path)
