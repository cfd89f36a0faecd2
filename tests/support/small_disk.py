"""Disks that are really full, so that tests meet the kernel's own errors."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, *, kib: int) -> Iterator[Path]:
    folder.mkdir()
    mounted = _mount("-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder))
    if mounted.returncode:
        pytest.skip(f"needs a small disk, but cannot mount one: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def change(disk: Path, option: str) -> None:
    """Remount the disk: the option "size=1m" makes room, and "ro" forbids writing."""
    _mount("-o", f"remount,{option}", str(disk)).check_returncode()


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """Limit each file to `size` bytes. Unlike mounting a disk, this needs no special rights."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _mount(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
