"""What Ray starts later: ports that are kept for it, and commands that wait."""

from __future__ import annotations

import socket
import subprocess
from types import SimpleNamespace

import pytest
from ray._private import worker

from orchestrator.cluster import local_node
from orchestrator.cluster.local_node import LocalNode, later
from orchestrator.cluster.ray_patches import dead_processes


def test_a_held_port_is_for_the_process_that_it_is_held_for() -> None:
    node = object.__new__(LocalNode)
    port = node._held_port(range(1))
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    with pytest.raises(OSError, match=f"no port of {port} to {port} is free"):
        node._held_port(range(port, port + 1))
    with (
        socket.create_server(("127.0.0.1", port)),
        socket.create_connection(("127.0.0.1", port), timeout=5),
    ):
        pass
    node.release_ports()


def test_a_port_that_is_held_no_more_is_anybodys() -> None:
    node = object.__new__(LocalNode)
    port = node._held_port(range(1))
    node.release_ports()
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        assert other.getsockname()[1] == port


def test_a_port_that_is_taken_is_passed_over() -> None:
    node = object.__new__(LocalNode)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert port < node._held_port(range(port, port + 50)) < port + 50
    node.release_ports()


def test_of_a_ray_that_starts_only_a_dead_gcs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    node, ended = object.__new__(LocalNode), subprocess.Popen(["true"])
    ended.wait()
    node.all_processes = {
        name: [SimpleNamespace(process=ended)] for name in ("raylet", "gcs_server", "dashboard")
    }
    monkeypatch.setattr(worker, "_global_node", None)
    assert dead_processes() == []
    monkeypatch.setattr(LocalNode, "starting", node)
    assert dead_processes() == ["gcs_server"]
    monkeypatch.setattr(worker, "_global_node", node)
    assert dead_processes() == ["raylet", "gcs_server"]


def test_a_command_that_waits_becomes_the_one_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_node, "LATER_S", 0.2)
    process = subprocess.Popen(
        later(["/bin/sh", "-c", 'echo $$ "$1"', "sh", "two words"]), stdout=subprocess.PIPE
    )
    answer, _ = process.communicate(timeout=20)
    assert answer.decode().split() == [str(process.pid), "two", "words"]
