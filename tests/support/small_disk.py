"""Disks that are full after a few files: real ones, since what counts is what the kernel
answers."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, *, kib: int) -> Iterator[Path]:
    """A file system of so many KiB, in memory. The test is skipped where this process may not mount
    one."""
    folder.mkdir()
    mounted = _mount("-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder))
    if mounted.returncode:
        pytest.skip(
            f"needs a disk of its own to fill, and none can be mounted: {mounted.stderr.strip()}"
        )
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def change(disk: Path, option: str) -> None:
    """Change the mounted disk: "size=1m" makes room, "ro" forbids writing."""
    _mount("-o", f"remount,{option}", str(disk)).check_returncode()


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """This process writes no file beyond so many bytes: the way to a refused write that needs no
    rights."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _mount(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
