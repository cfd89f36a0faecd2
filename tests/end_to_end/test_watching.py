from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import ray  # noqa: F401  (brings psutil)

from orchestrator.cluster import token_path
from orchestrator.store import open_store
from tests.support.command import ROOT, environment, wait_for

PROMETHEUS = shutil.which("prometheus")
GRAFANA = json.loads((ROOT / "docker" / "grafana-dashboard.json").read_text())
PERPLEXITY = 'ray_sweep_trial_metric{metric="valid_perplexity"}'
EXPRESSIONS = [target["expr"] for panel in GRAFANA["panels"] for target in panel["targets"]]
TRIAL = re.compile(r"gss c=\S+ k=\S+")


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sweep")


@pytest.fixture(scope="module")
def dashboard(storage: Path) -> Iterator[str]:
    """Start a sweep that outlasts every test, and yield the URL of Ray's dashboard."""
    typed = ("gss_grid", "--scale", "smoke", "--ray-dashboard", "--set", "training.epochs=100000",
             "--max-concurrent", "2", "--storage", storage)  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-u", ROOT / "sweep.py", *typed],
        env={**environment(), "RAY_metrics_report_interval_ms": "1000"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        seen: list[str] = []
        for line in process.stdout:
            seen.append(line)
            match = re.search(r"http://127\.0\.0\.1:\d+", line)
            if match:
                wait_for(partial(_answers, match.group()), timeout_s=60, event="Ray's dashboard")
                yield match.group()
                break
        else:
            raise AssertionError("".join(seen))
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.communicate(timeout=60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _answers(address: str) -> bool:
    host, port = address.removeprefix("http://").split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def token() -> str:
    return Path(token_path()).read_text().strip()


def get_json(url: str, **query: str) -> Any:
    request = urllib.request.Request(f"{url}?{urllib.parse.urlencode(query)}" if query else url)
    request.add_header("Authorization", f"Bearer {token()}")
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


@pytest.fixture(scope="module")
def prometheus(dashboard: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if PROMETHEUS is None:
        pytest.skip("no Prometheus on this machine")
    folder = tmp_path_factory.mktemp("prometheus")
    config = (ROOT / "docker" / "prometheus.yml").read_text()
    assert "http://127.0.0.1:8265/" in config
    config = config.replace("http://127.0.0.1:8265", dashboard).replace(
        "interval: 10s", "interval: 1s"
    )
    (folder / "prometheus.yml").write_text(config)
    (folder / "ray_auth_token").write_text(token())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [
            PROMETHEUS,
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=(folder / "log.txt").open("w"),
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait(timeout=20)


def query(prometheus: str, expression: str) -> list[dict[str, Any]]:
    try:
        return list(get_json(f"{prometheus}/api/v1/query", query=expression)["data"]["result"])
    except (ConnectionError, urllib.error.URLError):
        return []


@pytest.mark.timeout(240)
def test_every_grafana_query_returns_data(prometheus: str) -> None:
    wait_for(
        lambda: query(prometheus, "ray_sweep_trial_tokens_per_second"),
        timeout_s=120,
        event="a first metric",
    )
    variables = {
        "study": "gss_grid",
        "scale": "smoke",
        "corpus": "pydocs",
        "metric": "valid_perplexity",
    }
    missing = {
        re.sub(r"\$(\w+)", lambda match: variables[match[1]], expression)
        for expression in EXPRESSIONS
    }
    assert len(missing) >= 8
    deadline_s = time.monotonic() + 60
    while missing and time.monotonic() < deadline_s:
        missing = {expression for expression in missing if not query(prometheus, expression)}
        time.sleep(0.5)
    assert missing == set()


@pytest.mark.timeout(240)
def test_running_trials_have_series(
    prometheus: str,
) -> None:
    running = wait_for(
        lambda: query(prometheus, PERPLEXITY),
        timeout_s=120,
        event="a first metric",
    )
    assert 1 <= len(running) <= 2
    assert all(TRIAL.fullmatch(series["metric"]["trial"]) for series in running)
    states = {
        series["metric"]["state"]: int(series["value"][1])
        for series in query(prometheus, "ray_sweep_trials")
    }
    assert sum(states.values()) == 4
    assert states["running"] >= len(running)


def perplexities(prometheus: str) -> set[str]:
    return {series["metric"]["trial"] for series in query(prometheus, PERPLEXITY)}


@pytest.mark.timeout(240)
def test_stopped_trials_series_ends(prometheus: str, storage: Path) -> None:
    before = wait_for(lambda: perplexities(prometheus), timeout_s=120, event="a first metric")
    stopped = min(before)
    with open_store(str(storage / "results.db")) as store:
        (study,) = store.studies()
        (trial_id,) = (row.trial_id for row in store.trials(study.key) if row.name == stopped)
        store.ask_to_stop(trial_id)
    wait_for(
        lambda: stopped not in perplexities(prometheus),
        timeout_s=60,
        event="the end of the stopped trial's metric",
    )
    after = wait_for(
        lambda: perplexities(prometheus) - before, timeout_s=60, event="a metric of the next trial"
    )
    assert stopped not in after


@pytest.mark.parametrize(
    ("headers", "status"), [({}, 401), ({"Authorization": "Bearer wrong"}, 403)]
)
@pytest.mark.parametrize("path", ["cluster_status", "prometheus/sd"])
def test_dashboard_needs_the_token(
    dashboard: str, path: str, headers: dict[str, str], status: int
) -> None:
    request = urllib.request.Request(f"{dashboard}/api/{path}", headers=headers)
    with pytest.raises(urllib.error.HTTPError, match=str(status)):
        urllib.request.urlopen(request, timeout=20)


def listening() -> dict[str, set[str]]:
    psutil = import_module("psutil")
    addresses: dict[str, set[str]] = {}
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            sockets = process.net_connections("tcp")
            hosts = {socket.laddr.ip for socket in sockets if socket.status == "LISTEN"}
            addresses.setdefault(process.cmdline()[0], set()).update(hosts)
    return addresses


@pytest.mark.usefixtures("dashboard")
def test_ray_listens_on_loopback_only() -> None:
    agents = ("ray::DashboardAgent", "ray::RuntimeEnvAgent")
    wait_for(
        lambda: all(listening().get(agent) for agent in agents), timeout_s=60, event="Ray's agents"
    )
    addresses = set.union(*listening().values())
    assert {
        address
        for address in addresses
        if not ip_address(address.removeprefix("::ffff:")).is_loopback
    } == set()


@pytest.mark.usefixtures("dashboard")
def test_workers_are_named_by_trial(storage: Path) -> None:
    psutil = import_module("psutil")
    with open_store(str(storage / "results.db")) as store:
        wait_for(
            lambda: store.studies()[0].counts["running"] == 2,
            timeout_s=60,
            event="two running trials",
        )
    sweep = next(
        child for child in psutil.Process().children() if "sweep.py" in " ".join(child.cmdline())
    )

    def workers() -> list[str]:
        titles = [" ".join(process.cmdline()) for process in sweep.children(recursive=True)]
        return [title for title in titles if title.startswith("ray::") and "Agent" not in title]

    assert len(workers()) == len(os.sched_getaffinity(0)), workers()
    wait_for(
        lambda: len(set(TRIAL.findall(" ".join(workers())))) == 2,
        timeout_s=60,
        event="two workers named after their trials",
    )
