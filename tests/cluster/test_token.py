"""Without the cluster's token nobody gets in, whatever else listens."""

from __future__ import annotations

import re

from tests.cluster.namespaces import ROOT, Cluster

STATUS = """
import sys, urllib.request, urllib.error
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=20).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""
JOIN = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False); print(ray.cluster_resources())"
BEHIND_THE_TOKEN = (
    "/api/jobs/",
    "/api/version",
    "/nodes?view=summary",
    "/logical/actors",
    "/api/v0/actors",
    "/api/v0/logs?node_ip=10.77.0.1",
    "/api/cluster_status",
    "/api/prometheus/sd",
)
OPEN = ("/", "/api/authentication_mode")
"""The page on which the token is asked for, the same for everybody, and whether it asks."""


def test_without_the_token_neither_dashboard_nor_job_interface_answers_and_no_client_joins(three: Cluster) -> None:
    outside = three.network.machines[2]
    for path in BEHIND_THE_TOKEN:
        assert outside.python("-c", STATUS, three.dashboard + path).stdout.strip() == "401", path
    for path in OPEN:
        assert outside.python("-c", STATUS, three.dashboard + path).stdout.strip() == "200", path
    for wrong in ({"RAY_AUTH_TOKEN": "f" * 64, "RAY_AUTH_TOKEN_PATH": ""}, {"RAY_AUTH_MODE": "disabled"}):
        joined = outside.python("-c", JOIN, three.address, env=wrong, timeout_s=120)
        assert joined.returncode != 0, joined.stdout
        place = ("--storage", three.storage, "--store", three.store_url, "--address", three.address)
        refused = outside.sweep("gss_grid", "--scale", "smoke", *place, env=wrong)
        assert refused.returncode == 2, refused.stderr
        assert "No Ray cluster that this program can join" in refused.stderr
        assert "Traceback" not in refused.stderr


def listed() -> set[str]:
    """The processes that the table of docs/cluster.md names."""
    section = (ROOT / "docs" / "cluster.md").read_text().partition("## What listens")[2]
    return set(re.findall(r"^\| `([^`]+)`", section, re.MULTILINE))


def test_what_listens_is_what_the_documentation_lists(three: Cluster) -> None:
    """By the names of processes, which the kernel cuts off after fifteen bytes; ports are mostly drawn by Ray."""
    names = {name[:15] for name in listed()}
    assert len(names) >= 6
    for machine in three.network.machines[:2]:
        for line in machine.run("ss", "-ltnpH").stdout.splitlines():
            process = re.search(r'\(\("([^"]+)"', line)
            assert process is not None, line
            name = re.sub(r"^python[0-9.]+$", "python", process[1])
            assert name in names or name.startswith("ray::"), line


def test_a_join_with_the_token_works(three: Cluster) -> None:
    """So that the refusals above are the token's."""
    joined = three.network.machines[2].python("-c", JOIN, three.address)
    assert "'CPU': 3.0" in joined.stdout, joined.stderr
