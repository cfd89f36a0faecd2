"""What docker/ holds, as far as it can be checked without an engine; `make image-test` builds and
runs the image."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
DOCKERFILE = (DOCKER / "Dockerfile").read_text().replace("\\\n", " ")
COMPOSE = yaml.safe_load((DOCKER / "compose.yml").read_text())
SERVICES = COMPOSE["services"]
PASSWORD = re.compile(r"password|token|pgpass", re.IGNORECASE)


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.*)$", DOCKERFILE, re.MULTILINE)


def test_every_install_is_pinned_and_the_base_image_has_a_version() -> None:
    installs = [line for line in instructions("RUN") if "pip install" in line]
    assert installs
    assert all("--require-hashes" in line or "torch.txt" in line for line in installs)
    (base,) = (
        line.removeprefix("BASE=") for line in instructions("ARG") if line.startswith("BASE=")
    )
    assert re.fullmatch(r"nvidia/cuda:\d+\.\d+\.\d+-base-\w+\.\w+", base)
    assert SERVICES["head"]["build"]["args"]["BASE"] == f"${{BASE:-{base}}}"


def test_the_image_is_a_users_and_knows_whether_ray_is_well() -> None:
    last_stage = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]
    assert "\nUSER ${USER_ID}\n" in last_stage
    assert 'CMD ["ray", "health-check"]' in last_stage
    assert "pip install" not in last_stage
    assert DOCKERFILE.count("\nFROM ") == 3, "a base, the build and the image"
    assert {"gcc", "libc6-dev", "python3-dev"} <= set(last_stage.split()), (
        "Triton compiles its launchers"
    )


def test_what_the_dockerfile_copies_is_not_ignored_and_all_else_is() -> None:
    lines = [
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if not line.startswith("#")
    ]
    sources = [
        source
        for line in instructions("COPY")
        if "--from" not in line
        for source in line.split()[:-1]
    ]
    assert lines[0] == "*"
    assert {line.removeprefix("!") for line in lines if line.startswith("!")} == set(sources)
    assert all((ROOT / source).exists() for source in sources)
    assert not any(
        fnmatch(source, line)
        for source in sources
        for line in lines[1:]
        if not line.startswith("!")
    )


def test_the_compose_file_opens_no_more_than_it_must() -> None:
    ports = {name: service.get("ports", []) for name, service in SERVICES.items()}
    assert ports == {"head": ["127.0.0.1:8265:8265"], "worker": [], "postgres": []}, (
        "the dashboard, on loopback alone"
    )
    assert (SERVICES["worker"]["networks"], SERVICES["postgres"]["networks"]) == (
        ["ray"],
        ["store"],
    )
    assert COMPOSE["networks"]["store"] == {"internal": True}, "workers cannot reach it"
    for name in ("head", "worker"):
        assert SERVICES[name]["read_only"] is True
        assert SERVICES[name]["cap_drop"] == ["ALL"]
        assert SERVICES[name]["volumes"] == ["results:/app/results"]
    (device,) = SERVICES["worker"]["deploy"]["resources"]["reservations"]["devices"]
    assert device["capabilities"] == ["gpu"]


def test_secrets_are_files_and_no_value_stands_in_the_compose_file() -> None:
    for service in SERVICES.values():
        for name, value in service["environment"].items():
            assert (
                not PASSWORD.search(name)
                or name == "RAY_AUTH_MODE"
                or value.startswith("/run/secrets/")
            ), name
    assert all(set(secret) == {"file"} for secret in COMPOSE["secrets"].values())


def test_postgres_is_set_up_by_its_password_also_on_a_local_socket() -> None:
    """Its image's first start connects there as another user than the system's, which `peer` would
    refuse."""
    wanted = "--auth-host=scram-sha-256 --auth-local=scram-sha-256"
    assert SERVICES["postgres"]["environment"]["POSTGRES_INITDB_ARGS"] == wanted


def test_docker_itself_finds_the_compose_file_valid(tmp_path: Path) -> None:
    docker = shutil.which("docker")
    if (
        docker is None
        or subprocess.run([docker, "compose", "version"], capture_output=True).returncode
    ):
        pytest.skip("docker compose is not installed here")
    asked = [docker, "compose", "--file", str(DOCKER / "compose.yml"), "config", "--format", "json"]
    answer = subprocess.run(asked, capture_output=True, text=True, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert set(json.loads(answer.stdout)["services"]) == {"head", "worker", "postgres"}


def test_secrets_are_made_once_and_only_their_owner_can_read_them(tmp_path: Path) -> None:
    shutil.copy(DOCKER / "secrets.sh", tmp_path)
    made = []
    for _ in range(2):
        answer = subprocess.run(
            ["sh", tmp_path / "secrets.sh"], check=True, capture_output=True, text=True
        )
        made.append({file.name: file.read_text() for file in (tmp_path / "secrets").iterdir()})
    assert made[0] == made[1]
    assert set(made[0]) == {"ray_token", "database_password", "pgpass"}
    assert re.fullmatch(r"[0-9a-f]{64}", made[0]["ray_token"])
    assert made[0]["pgpass"] == f"postgres:5432:sweeps:sweeps:{made[0]['database_password']}\n"
    assert made[0]["ray_token"] not in answer.stdout
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "secrets").iterdir()} == {0o600}
