"""Makes reads fail by a patch: root can open any file, so permissions do not suffice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

OPEN = os.open


@contextmanager
def failing_reads(prefix: str, number: int) -> Iterator[None]:
    def fail(path: Any, *arguments: Any, **options: Any) -> int:
        if os.path.basename(os.fsdecode(path)).startswith(prefix):  # noqa: PTH119  (of any path)
            raise OSError(number, os.strerror(number), path)
        return OPEN(path, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trainables.trial_folder.files.os.open", fail)
        yield
