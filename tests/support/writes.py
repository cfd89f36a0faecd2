"""Records the paths that this process opens for writing, creates, renames or removes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

# For each audit event, the number of paths with which its arguments begin.
PLACES = {
    "os.mkdir": 1,
    "os.rename": 2,
    "os.remove": 1,
    "os.rmdir": 1,
    "os.symlink": 2,
    "os.link": 2,
    "os.truncate": 1,
}
CACHES = ("__pycache__", "/matplotlib", "/dev/null", "/dev/shm")
_watched: list[list[str]] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watched:
        return
    if event == "open":
        path, _, flags = arguments
        if isinstance(path, (str, bytes, os.PathLike)) and flags & (
            os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
        ):
            _watched[-1].append(os.fsdecode(path))
    elif event == "sqlite3.connect":
        _watched[-1].append(os.fsdecode(arguments[0]))
    elif event in PLACES:
        paths = arguments[: PLACES[event]]
        _watched[-1] += [
            os.fsdecode(path) for path in paths if isinstance(path, (str, bytes, os.PathLike))
        ]


@cache
def _watch() -> None:
    """Install the audit hook only on demand.

    Python can never remove it, and calls it for every `id()`.
    """
    sys.addaudithook(_hook)


@contextmanager
def written() -> Iterator[list[str]]:
    _watch()
    _watched.append([])
    written_paths: list[str] = []
    try:
        yield written_paths
    finally:
        paths = _watched.pop()
        written_paths += [
            os.path.realpath(path) for path in paths if not any(cache in path for cache in CACHES)
        ]


def outside(paths: list[str], *folders: Path) -> list[str]:
    roots = [os.path.realpath(folder) for folder in folders]
    return [
        path
        for path in paths
        if not any(path == root or path.startswith(root + os.sep) for root in roots)
    ]
