from __future__ import annotations

import pytest
import ray

from orchestrator.cluster.worker_signs import leave_sign, machine_here, remove_sign, signs


@ray.remote(num_cpus=0)
def leave(key: str, text: bytes) -> str:
    leave_sign(key, text)
    return machine_here()


@pytest.mark.usefixtures("one_ray")
def test_newest_sign_is_read() -> None:
    for text in (b"first", b"second"):
        assert ray.get(leave.remote("a", text)) == machine_here()
    assert signs(["a", "nobody"]) == {"a": b"second"}
    remove_sign("a")
    remove_sign("nobody")
    assert signs(["a"]) == {}
