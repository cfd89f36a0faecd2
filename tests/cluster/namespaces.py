"""A simulated cluster: each machine is a set of Linux namespaces around an idle process.

Each machine has its own network, processes, host name and /tmp/ray; all other folders are shared.
The kernel kills a cluster's processes when the process that created the cluster ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.postgres import PostgresServer

ROOT = Path(__file__).parents[2]
NETWORK = "10.77.0"
GCS_PORT, DASHBOARD_PORT, POSTGRES_PORT = 6379, 8265, 5432
TOKEN, PASSWORD = "0123456789abcdef" * 4, "only-of-this-test"
START_ATTEMPTS = 4
TOOLS = ("ip", "unshare", "nsenter", "setpriv", "ss")
IDLE = """
hostname {name} && mkdir -p /tmp/ray && mount -t tmpfs tmpfs /tmp/ray
ip link set lo up && echo ready
while :; do sleep 1; done
"""
FAST_DETECTION = {
    "RAY_health_check_initial_delay_ms": "2000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "8000",
    "RAY_health_check_failure_threshold": "3",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "20",
}
"""Ray declares a lost machine dead after about 25 s instead of a minute."""


def why_not() -> str | None:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"needs {', '.join(missing)} (iproute2 and util-linux)"
    if os.geteuid() != 0:
        return "needs root, to make network namespaces"
    probe = subprocess.run(
        ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    return None if probe.returncode == 0 else f"needs namespaces ({probe.stderr.strip()})"


class Machine:
    def __init__(self, name: str, number: int, environment: Mapping[str, str]) -> None:
        self.name, self.number, self.address = name, number, f"{NETWORK}.{number}"
        self.environment = dict(environment)
        namespaces = [
            "--net",
            "--mount",
            "--uts",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ]
        command = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            "unshare",
            *namespaces,
            "sh",
            "-c",
            IDLE.format(name=name),
        ]
        self._holder = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        with self._holder.stdout as output:  # type: ignore[union-attr]
            assert output.readline() == "ready\n", f"the machine {name} did not start"
        self.pid = int(
            Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children").read_text()
        )

    def inside(self, *command: str | Path) -> list[str]:
        enter = ["nsenter", "--target", str(self.pid), "--all", "--wd=" + str(ROOT)]
        return [*enter, "setpriv", "--pdeathsig", "KILL", *map(str, command)]

    def popen(
        self, *command: str | Path, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.inside(*command),
            env={**os.environ, **self.environment, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(
        self, *command: str | Path, timeout_s: float = 300, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        process = self.popen(*command, env=env)
        with process:
            try:
                out, err = process.communicate(timeout=timeout_s)
            finally:
                process.kill()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def python(self, *arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, *arguments, **options)

    def sweep(self, *arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        return self.python("sweep.py", *arguments, **options)

    def kill(self) -> None:
        """Kill every process at once, like a power failure."""
        self._holder.kill()
        self._holder.wait(timeout=30)


class Network:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._switch = Machine("switch", 254, environment)
        self._ip("link", "add", "bridge", "type", "bridge")
        self._ip("link", "set", "bridge", "up")
        self._environment = environment
        self.machines: list[Machine] = []

    def add(self, name: str, **environment: str) -> Machine:
        number = len(self.machines) + 1
        machine = Machine(name, number, {**self._environment, **environment})
        self.machines.append(machine)
        port = f"port{number}"
        self._ip(
            "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(machine.pid)
        )
        self._ip("link", "set", port, "master", "bridge", "up")
        for words in (
            ("address", "add", f"{machine.address}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
        ):
            subprocess.run(
                ["nsenter", "--target", str(machine.pid), "--net", "ip", *words], check=True
            )
        return machine

    def cut(self, machine: Machine) -> None:
        self._ip("link", "set", f"port{machine.number}", "down")

    def close(self) -> None:
        for machine in (*self.machines, self._switch):
            machine.kill()

    def _ip(self, *words: str) -> None:
        subprocess.run(
            ["nsenter", "--target", str(self._switch.pid), "--net", "ip", *words], check=True
        )


class Cluster:
    """A cluster with token-protected Ray on every machine, and PostgreSQL on the first machine."""

    def __init__(self, folder: Path, postgres: Path, network: Network) -> None:
        # The user that runs PostgreSQL, who is not root, must be able to enter this folder.
        self.postgres, self.network = postgres, network
        self.storage = folder / "shared"
        self.storage.mkdir()
        self.head = network.machines[0]
        self.address = f"{self.head.address}:{GCS_PORT}"
        self.dashboard = f"http://{self.head.address}:{DASHBOARD_PORT}"
        self.store_url = f"postgresql+psycopg://sweep@{self.head.address}:{POSTGRES_PORT}/sweeps"
        """URL without the password, which libpq reads from PGPASSFILE."""
        self.store_url_from_outside = (
            f"postgresql+psycopg://sweep:{PASSWORD}@/sweeps?host={postgres}"
        )
        self.options = ("--storage", self.storage, "--store", self.store_url)

    def join(self, name: str, cpus: int = 1, **environment: str) -> Machine:
        machine = self.network.add(name, **environment)
        self.start_ray(machine, cpus, f"--address={self.address}")
        return machine

    def start_ray(self, machine: Machine, cpus: int, *options: str) -> None:
        common = [
            f"--node-ip-address={machine.address}",
            f"--num-cpus={cpus}",
            "--object-store-memory=80000000",
        ]
        ray = [sys.executable, "-m", "ray.scripts.scripts"]
        command = [*ray, "start", *common, "--disable-usage-stats", *options]
        # On a busy host Ray may give up after its own 30 s. `ray stop` only sees this machine's
        # processes.
        for _ in range(START_ATTEMPTS):
            started = machine.run(*command)
            if started.returncode == 0:
                return
            machine.run(*ray, "stop", "--force")
        raise AssertionError(started.stdout + started.stderr)


@contextmanager
def cluster(folder: Path, cpus: int = 1) -> Iterator[Cluster]:
    with ExitStack() as stack:
        token, pgpass = folder / "token", folder / "pgpass"
        for path, text in ((token, TOKEN), (pgpass, f"*:*:*:*:{PASSWORD}\n")):
            path.write_text(text)
            path.chmod(0o600)
        environment = {
            **FAST_DETECTION,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
            "RAY_USAGE_STATS_ENABLED": "0",
            # Importing the product sets this in the test's own process only.
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1",
            "PGPASSFILE": str(pgpass),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "200",
            "TMPDIR": "/tmp",
        }
        postgres = stack.enter_context(TemporaryDirectory(prefix="sweeps-postgres-"))
        network = Network(environment)
        stack.callback(network.close)
        network.add("head")
        machines = Cluster(folder, Path(postgres), network)
        # The server runs on the head and ends with it; all machines reach it by password.
        server = PostgresServer(
            machines.postgres,
            password=PASSWORD,
            network=(machines.head.address, f"{NETWORK}.0/24"),
            inside=lambda command: machines.head.inside(*command),
        )
        server.execute("CREATE DATABASE sweeps")
        dashboard = (
            f"--dashboard-host={machines.head.address}",
            f"--dashboard-port={DASHBOARD_PORT}",
        )
        machines.start_ray(machines.head, cpus, "--head", f"--port={GCS_PORT}", *dashboard)
        for name in ("second", "third"):
            machines.join(name, cpus)
        yield machines
