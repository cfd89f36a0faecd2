"""Build the image on plain Debian without a Docker engine, and run sweeps in it.

    python3 docker/image_test.py FOLDER [--build-arg=NAME=VALUE ...] [--volume=HERE:THERE:ro ...]

One sweep runs in a writable container. Two run in read-only containers: one without /tmp, and one
with a noexec /tmp. Needs root, buildah and debootstrap. All files and images are in FOLDER. Other
options go to `buildah build`: --build-arg=PIP_ARGS=... for PyTorch's CPU build, --volume for a
certificate or a pip.conf.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
BASE = "localhost/debian:bookworm"
IMAGE = "localhost/sweeps:test"
SWEEP = ("python", "sweep.py", "gss_grid", "--scale", "smoke")
UNNEEDED = ("make", "git", "pip", "pytest", "mypy", "ruff")
HEALTH = """
if ray health-check 2>&1; then echo "healthy before Ray runs"; exit 1; fi
ray start --head --port=0 --include-dashboard=false --temp-dir=/app/results/ray >/dev/null 2>&1
ray health-check
ray stop >/dev/null 2>&1
"""
# Test that Triton can load a compiled module from its cache in the image. The CUDA library is
# empty. From a noexec /tmp, loading fails. From the image's folder, only the library's functions
# are missing.
FIRST_LAUNCH = """
import os, subprocess
from triton.backends.nvidia.driver import CudaDriver
from trainables.device import triton_problem
CudaDriver.is_active = staticmethod(lambda: True)
subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", "-o", "results/libcuda.so.1"], check=True)
os.environ["TRITON_LIBCUDA_PATH"] = "/app/results"
image_cache = os.environ["TRITON_CACHE_DIR"]
causes = {"/tmp/triton": "failed to map segment", image_cache: "undefined symbol: cu"}
for cache, cause in causes.items():
    os.environ["TRITON_CACHE_DIR"] = cache
    triton_problem.cache_clear()
    assert cause in (problem := str(triton_problem("cpu"))), problem
"""
# Run a command as an engine does with `--read-only`, `--cap-drop ALL` and a results volume. If
# TMPDIR is not set, also with `--tmpfs /tmp`. /dev/shm stays writable.
READ_ONLY = """
root=$1 results=$2 user=$3 && shift 3
mount --bind "$root" "$root"
mount --bind "$results" "$root/app/results"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/shm"
mount -t tmpfs -o mode=1777,size=1g tmpfs "$root/dev/shm"
mount -o remount,ro "$root/dev"
mount -o remount,bind,ro "$root"
[ -n "${TMPDIR:-}" ] || mount -t tmpfs -o noexec,nosuid,nodev,mode=1777 tmpfs "$root/tmp"
exec chroot "$root" setpriv --reuid="$user" --regid="$user" --clear-groups --no-new-privs \
    --bounding-set=-all env --chdir=/app "$@"
"""
WRITABLE = """
for folder in / /app /tmp /var/tmp /home /opt/venv /dev; do
    if touch "$folder/probe" 2>/dev/null; then echo "$folder is writable"; exit 1; fi
done
touch results/probe && rm results/probe && test "$(id -u)" != 0
"""


class Images:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str) -> str:
        options = (
            "--root",
            f"{self.folder}/images",
            "--runroot",
            f"{self.folder}/run",
            "--storage-driver",
            "vfs",
        )
        streams = arguments[0] in ("build", "run")
        process = subprocess.run(
            ["buildah", *options, *arguments],
            check=True,
            text=True,
            stdout=None if streams else subprocess.PIPE,
        )
        return "" if streams else process.stdout.strip()


def make_base(images: Images) -> None:
    if BASE in images("images", "--format", "{{.Name}}:{{.Tag}}"):
        return
    # Docker would pull this base image.
    system = images.folder / "debian"
    subprocess.run(["rm", "-rf", system], check=True)
    subprocess.run(["debootstrap", "--variant=minbase", "bookworm", system], check=True)
    container = images("from", "scratch")
    images("copy", "--quiet", container, str(system), "/")
    images("commit", "--quiet", "--rm", container, BASE)


def build(images: Images, arguments: list[str]) -> None:
    dockerfile = str(REPOSITORY / "docker/Dockerfile")
    # PyTorch's CPU build does not include Triton.
    build_args = ("--build-arg", f"BASE={BASE}", "--build-arg", "EXTRAS=triton")
    options = ("--isolation", "chroot", "--format", "docker", *build_args, *arguments)
    images("build", *options, "--file", dockerfile, "--tag", IMAGE, str(REPOSITORY))


def results_folder(images: Images, name: str, user: int) -> Path:
    folder = images.folder / name
    subprocess.run(["rm", "-rf", folder], check=True)
    folder.mkdir()
    os.chown(folder, user, user)
    return folder


def report_sizes(root: Path) -> None:
    (packages,) = root.glob("opt/venv/lib/python3*/site-packages")
    for folder, largest in ((root, 0), (packages, 12)):
        lines = subprocess.run(
            ["du", "-x", "--block-size=MB", f"--max-depth={min(largest, 1)}", folder],
            check=True, capture_output=True, text=True,
        ).stdout.splitlines()  # fmt: skip
        for line in sorted(lines, key=lambda line: -int(line.split("MB")[0]))[: largest + 1]:
            print(line.replace(str(root), "image:") + ("/" if folder == root else ""))


def check_contents(root: Path, config: dict[str, Any]) -> None:
    assert int(config["User"]) > 0, config["User"]
    assert config["Healthcheck"]["Test"] == ["CMD", "ray", "health-check"], config["Healthcheck"]
    programs = [
        name
        for name in UNNEEDED
        for folder in ("usr/bin", "opt/venv/bin")
        if (root / folder / name).exists()
    ]
    assert not programs, f"the image holds {', '.join(programs)}"
    command = ["find", str(root), "-xdev", "-type", "f", "-perm", "/6000"]
    assert not (
        files := subprocess.run(command, check=True, capture_output=True, text=True).stdout
    ), files


def main(folder: Path, arguments: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    images = Images(folder.resolve())
    make_base(images)
    build(images, arguments)
    container = images("from", IMAGE)
    try:
        root = Path(images("mount", container))
        config = json.loads(images("inspect", "--type", "image", IMAGE))["Docker"]["config"]
        report_sizes(root)
        check_contents(root, config)
        user = int(config["User"])
        environment = dict(entry.split("=", 1) for entry in config["Env"])
        without_tmp = environment | {"HOME": "/app/results", "TMPDIR": "/app/results"}
        names = ("results", "results-read-only", "results-noexec-tmp")
        first, second, third = (results_folder(images, name, user) for name in names)
        images(
            "run",
            "--isolation",
            "chroot",
            "--volume",
            f"{first}:/app/results",
            container,
            "--",
            *SWEEP,
        )
        # Each command gets its own namespaces, so that it cannot find another Ray on this host.
        inside = (
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--ipc",
            "sh",
            "-euc",
            READ_ONLY,
            "sh",
            root,
        )
        for results, variables, command in (
            (second, without_tmp, ("sh", "-euc", WRITABLE)),
            (second, without_tmp, ("sh", "-euc", HEALTH)),
            (second, without_tmp, SWEEP),
            (third, environment, ("python", "-c", FIRST_LAUNCH)),
            (third, environment, SWEEP),
        ):
            subprocess.run([*inside, results, str(user), *command], check=True, env=variables)
        for results in (first, second, third):
            assert list(results.glob("reports/*/*.html")), f"no report in {results}"
    finally:
        images("rm", container)
    print(
        "The image builds, is healthy only while Ray runs, and runs a sweep without root, also "
        "on a read-only root."
    )
    print("With a noexec /tmp, a sweep runs and Triton loads its compiled modules.")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
