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
JOIN = """
import sys, ray
ray.init(address=sys.argv[1], log_to_driver=False)
print(ray.cluster_resources())
"""
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


def test_access_needs_the_token(
    three: Cluster,
) -> None:
    outside = three.network.machines[2]
    for path in BEHIND_THE_TOKEN:
        assert outside.python("-c", STATUS, three.dashboard + path).stdout.strip() == "401", path
    for machine in three.network.machines:
        agent = f"http://{machine.address}:52365/api/job_agent/jobs/"
        assert outside.python("-c", STATUS, agent).stdout.strip() == "401", agent
    for path in OPEN:
        assert outside.python("-c", STATUS, three.dashboard + path).stdout.strip() == "200", path
    for wrong in (
        {"RAY_AUTH_TOKEN": "f" * 64, "RAY_AUTH_TOKEN_PATH": ""},
        {"RAY_AUTH_MODE": "disabled"},
    ):
        joined = outside.python("-c", JOIN, three.address, env=wrong, timeout_s=120)
        assert joined.returncode != 0, joined.stdout
        words = ("gss_grid", "--scale", "smoke", *three.options, "--address", three.address)
        refused = outside.sweep(*words, env=wrong)
        assert refused.returncode == 2, refused.stderr
        assert "cannot be joined" in refused.stderr
        assert "Traceback" not in refused.stderr
        job = (
            "-m",
            "ray.scripts.scripts",
            "job",
            "submit",
            "--address",
            three.dashboard,
            "--",
            "true",
        )
        assert outside.python(*job, env=wrong).returncode != 0
    # Control: with the token, joining works.
    joined = outside.python("-c", JOIN, three.address)
    assert "'CPU': 3.0" in joined.stdout, joined.stderr


def documented_scopes() -> dict[str, str]:
    section = (ROOT / "docs" / "ray-cluster.md").read_text().partition("## What listens")[2]
    rows = re.findall(r"^\| `([^`]+)`[^|]*\|[^|]*\|([^|]*)\|", section, re.MULTILINE)
    scopes: dict[str, str] = {}
    for process, listed_scope in rows:
        scopes[process[:15]] = scopes.get(process[:15], "") + listed_scope
    return scopes


def scope(address: str) -> str:
    if address in ("0.0.0.0", "*", "[::]"):
        return "all"
    return (
        "loopback"
        if address.startswith("127.") or address in ("[::1]", "[::ffff:127.0.0.1]")
        else "cluster's"
    )


def test_only_documented_ports_listen(three: Cluster) -> None:
    """Ray draws most ports at random, so the test ignores port numbers."""
    table = documented_scopes()
    assert len(table) >= 6
    for machine in three.network.machines[:2]:
        for line in machine.run("ss", "-ltnpH").stdout.splitlines():
            process = re.search(r'\(\("([^"]+)"', line)
            assert process is not None, line
            name = re.sub(r"^python[0-9.]+$", "python", process[1])
            expected = table.get(name) or (table["ray::"] if name.startswith("ray::") else "")
            address, _, port = line.split()[3].rpartition(":")
            assert scope(address) in expected, line
            named = [words for words in table.values() if re.search(rf"\b{port}\b", words)]
            assert not named or expected in named, line
