"""Ray on this machine: what a trial needs starts at once, what people look at some seconds later.

Ray's dashboard and agents take as much of two cores to start as a small sweep does; no trial needs
them."""

from __future__ import annotations

import socket
import sys
from typing import Any

import ray
from ray._private import ray_constants
from ray._private.node import Node
from ray.experimental import internal_kv

RAYLET: Any = ray._raylet  # Ray's extension module has no types
LATER_S = 8.0
WAIT = "import os, sys, time; time.sleep(float(sys.argv[1])); os.execv(sys.argv[2], sys.argv[2:])"
DASHBOARD_PORTS = range(
    ray_constants.DEFAULT_DASHBOARD_PORT, ray_constants.DEFAULT_DASHBOARD_PORT + 50
)
AGENT_PORTS = {
    "metrics_agent_port": RAYLET.METRICS_AGENT_PORT_NAME,
    "metrics_export_port": RAYLET.METRICS_EXPORT_PORT_NAME,
    "runtime_env_agent_port": RAYLET.RUNTIME_ENV_AGENT_PORT_NAME,
    "dashboard_agent_listen_port": RAYLET.DASHBOARD_AGENT_LISTEN_PORT_NAME,
}


def later(command: list[str]) -> list[str]:
    """A command that waits, and then becomes the given one."""
    return [sys.executable, "-I", "-S", "-c", WAIT, str(LATER_S), *command]


class LocalNode(Node):
    """Ray's own processes, with addresses that are settled before anything answers there.

    There is no autoscaler, as machines do not come and go, and no monitor of logs, which nobody
    reads."""

    starting: LocalNode | None = None
    """The one that Ray has made and not given to anybody yet; it has a GCS."""

    def start_monitor(self) -> None:
        """Nothing."""

    def start_log_monitor(self) -> None:
        """Nothing."""

    def start_api_server(self, **options: Any) -> None:
        """Ray waits for the address that the dashboard writes down: write it down before."""
        LocalNode.starting = self
        port = self._held_port(DASHBOARD_PORTS)
        self._set(dashboard_port=port)
        internal_kv._initialize_internal_kv(self.get_gcs_client())  # type: ignore[no-untyped-call]
        address = f"{self._ray_params.dashboard_host}:{port}"
        namespace = ray_constants.KV_NAMESPACE_DASHBOARD
        internal_kv._internal_kv_put(ray_constants.DASHBOARD_ADDRESS, address, namespace=namespace)
        super().start_api_server(**options)

    def start_raylet(self, *arguments: Any, **options: Any) -> None:
        """The raylet waits for the ports that its agents write down: write them down before."""
        for parameter, name in AGENT_PORTS.items():
            port = self._held_port(range(1))
            self._set(**{parameter: port})
            RAYLET.persist_port(self._session_dir, self._node_id, name, port)
        super().start_raylet(*arguments, **options)

    def kill_all_processes(self, *arguments: Any, **options: Any) -> None:
        """The ports are free again, too."""
        self.release_ports()
        super().kill_all_processes(*arguments, **options)

    def release_ports(self) -> None:
        """Hold none any more."""
        for holder in self._holders():
            holder.close()

    def _holders(self) -> list[socket.socket]:
        # Not made in __init__, which is Ray's and starts everything.
        holders: list[socket.socket] = vars(self).setdefault("_held", [])
        return holders

    def _set(self, **parameters: Any) -> None:
        self._ray_params.update(**parameters)  # type: ignore[no-untyped-call]

    def _held_port(self, candidates: range) -> int:
        """The first that is free (0: any). Nobody takes it before the process for which it is held.

        That one asks to use an address again, as Ray's processes do, and is let in; who only looks
        for a free port is not. Raises OSError where none is free."""
        for port in candidates:
            holder = socket.socket()
            try:
                holder.bind(("127.0.0.1", port))
            except OSError:
                holder.close()
                continue
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._holders().append(holder)
            return int(holder.getsockname()[1])
        raise OSError(f"no port of {candidates.start} to {candidates.stop - 1} is free")
