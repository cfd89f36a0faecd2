"""Without the cluster's token nobody gets in, whatever else listens."""

from __future__ import annotations

import re

from tests.cluster.namespaces import Cluster

STATUS = """
import sys, urllib.request, urllib.error
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=20).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""
JOIN = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False); print(ray.cluster_resources())"
BEHIND_THE_TOKEN = ("/", "/api/jobs/", "/nodes?view=summary", "/api/v0/actors", "/api/cluster_status")


def test_without_the_token_neither_dashboard_nor_job_interface_answers_and_no_client_joins(three: Cluster) -> None:
    outside = three.network.machines[2]
    for path in BEHIND_THE_TOKEN:
        assert outside.python("-c", STATUS, three.dashboard + path).stdout.strip() == "401", path
    for wrong in ({"RAY_AUTH_TOKEN": "f" * 64, "RAY_AUTH_TOKEN_PATH": ""}, {"RAY_AUTH_MODE": "disabled"}):
        joined = outside.python("-c", JOIN, three.address, env=wrong, timeout_s=120)
        assert joined.returncode != 0, joined.stdout
        place = ("--storage", three.storage, "--store", three.store_url, "--address", three.address)
        refused = outside.sweep("gss_grid", "--scale", "smoke", *place, env=wrong)
        assert refused.returncode == 2, refused.stderr
        assert "No Ray cluster that this program can join" in refused.stderr
        assert "Traceback" not in refused.stderr


def test_what_listens_is_what_the_documentation_lists(three: Cluster) -> None:
    """Process names, by the address that they listen on; ports that Ray draws are left out."""
    for machine in three.network.machines[:2]:
        found = set()
        for line in machine.run("ss", "-ltnpH").stdout.splitlines():
            name = re.search(r'\(\("([^"]+)"', line)
            assert name is not None, line
            found.add(name[1])
        workers = {name for name in found if name.startswith("ray::") and "Agent" not in name and "Dashb" not in name}
        others = found - workers
        assert others <= {"raylet", "ray::RuntimeEnv", "ray::DashboardA", "gcs_server", "python", "postgres"}, found


def test_a_join_with_the_token_works(three: Cluster) -> None:
    """So that the refusals above are the token's."""
    joined = three.network.machines[2].python("-c", JOIN, three.address)
    assert "'CPU': 3.0" in joined.stdout, joined.stderr
