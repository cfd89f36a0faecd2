"""Computers that only read: without Ray, torch and optuna, or without Linux's /proc and calls."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.command import ROOT, environment

WITHOUT_PACKAGES = """
import sys


class Hidden:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("ray", "torch", "optuna"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Hidden())
"""
WITHOUT_LINUX = """
import ctypes, os, time, psutil

for name in ("pipe2", "pidfd_open", "sched_getaffinity", "sched_setaffinity", "waitid"):
    delattr(os, name)
del time.CLOCK_BOOTTIME


class Library(ctypes.CDLL):
    def __getattr__(self, name):
        if name == "prctl":
            raise AttributeError(name)
        return super().__getattr__(name)


ctypes.CDLL = Library
psutil.PROCFS_PATH = os.environ["PSUTIL_PROC"]  # psutil also knows other systems
"""
HIDE_PROC = (
    *("unshare", "--mount", *(() if os.geteuid() == 0 else ("--map-root-user",)), "sh", "-c"),
    'mount --bind /proc "$PSUTIL_PROC" && mount -t tmpfs none /proc && exec "$@"',
    "sh",
)


def laptop(folder: Path, customization: str) -> dict[str, str]:
    """Return an environment in which each Python process first runs `customization`."""
    site, proc = folder / "site", folder / "proc"
    for path in (site, proc):
        path.mkdir()
    (site / "sitecustomize.py").write_text(customization)
    paths = os.pathsep.join(map(str, (site, ROOT)))
    return {**environment(), "PYTHONPATH": paths, "PSUTIL_PROC": str(proc)}


def laptop_without_linux(folder: Path) -> dict[str, str]:
    """Return the environment for commands that begin with `HIDE_PROC`."""
    variables = laptop(folder, WITHOUT_LINUX)
    words = [*HIDE_PROC, "test", "!", "-e", "/proc/self"]
    hidden = subprocess.run(words, env=variables, capture_output=True, text=True)
    if hidden.returncode:
        pytest.skip(f"/proc cannot be hidden here: {hidden.stderr.strip()}")
    return variables
