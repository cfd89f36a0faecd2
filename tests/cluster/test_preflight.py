from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.store.opening import open_store
from tests.cluster.namespaces import ROOT, Cluster, cluster


def refusal(three: Cluster, *words: str | Path, **variables: str) -> str:
    options = (*three.options, "--address", three.address)
    answer = three.head.sweep("gss_grid", "--scale", "smoke", *options, *words, env=variables)
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert "Traceback" not in answer.stderr
    assert list(three.storage.glob("trials/*/*/result.json")) == []
    return answer.stderr


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("shared")) as machines:
        yield machines


def test_wrong_address_is_reported(shared: Cluster) -> None:
    for address in ("10.77.0.1:1", "10.77.0.99:6379"):
        assert f"no Ray cluster answers at {address}" in refusal(shared, "--address", address)


def test_wrong_password_is_reported_not_shown(shared: Cluster) -> None:
    error = refusal(shared, PGPASSWORD="mistaken")
    assert "password" in error
    assert "mistaken" not in error


def test_unshared_storage_is_reported(shared: Cluster, tmp_path: Path) -> None:
    third = shared.network.machines[2]
    hidden = tmp_path / "results"
    hidden.mkdir()
    assert third.run("mount", "-t", "tmpfs", "tmpfs", hidden).returncode == 0
    error = refusal(shared, "--storage", hidden)
    assert (
        f"The machine third ({third.address}) does not see the storage: {hidden} is another folder"
        in error
    )
    assert error.count("\n") == 1, "the others do"


def test_different_versions_are_reported(shared: Cluster, tmp_path: Path) -> None:
    """This test must run last: it adds machines with another torch and changed project code."""
    fake = tmp_path / "torch-0.0.1.dist-info"
    fake.mkdir()
    (fake / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 0.0.1\n")
    changed, file = tmp_path / "errors.py", ROOT / "trainables" / "errors.py"
    changed.write_text(file.read_text() + "\n")
    shared.join("fourth", PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert shared.join("fifth").run("mount", "--bind", changed, file).returncode == 0
    error = refusal(shared)
    assert "The machine fourth (10.77.0.4) has torch 0.0.1, but the driver has torch " in error
    assert "The machine fifth (10.77.0.5) has this project's code " in error
    with open_store(shared.store_url_from_outside, create=False) as store:
        assert {summary.counts["done"] for summary in store.studies()} == {0}
