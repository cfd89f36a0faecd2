"""The versions, host and device that a trial's result records."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("torch", "numpy", "scipy", "pydantic", "safetensors", "ray")


@cache
def code_version() -> str:
    """Return the commit of this checkout, with `+changes` if there are local changes.

    Outside a checkout, return the environment variable SWEEPS_CODE_VERSION (set in a Docker image),
    or `unknown`.
    """
    checkout = Path(__file__).resolve().parents[1]
    try:
        answer = subprocess.run(
            ["git", "describe", "--always", "--dirty=+changes", "--abbrev=12"],
            cwd=checkout,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return os.environ.get("SWEEPS_CODE_VERSION") or "unknown"
    return answer.stdout.strip()


@cache
def package_versions() -> dict[str, str]:
    """Return the versions of the packages that results depend on."""
    versions = {}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


@cache
def processor_name() -> str:
    """Return the processor's model name."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def describe(device: str, threads: int) -> dict[str, str]:
    """Return versions, host and device as a flat table."""
    hardware = processor_name()
    if device != "cpu":
        from trainables.device import gpu_name

        hardware = gpu_name()
    return {
        "code": code_version(),
        "python": platform.python_version(),
        "host": socket.gethostname(),
        "device": device,
        "hardware": hardware,
        "threads": str(threads),
        **package_versions(),
    }
