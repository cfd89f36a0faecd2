"""What `run` and `retry` do before anything is run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from orchestrator.command.app import app, main
from orchestrator.command.options import COMMANDS

NOBODY = "http://127.0.0.1:1"


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The URL of a data folder in an object store that does not answer."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOBODY)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return "s3://bucket/data"


def test_a_dry_run_plans_by_names_and_asks_no_object_store(
    unreachable: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["gss_grid", "--scale", "smoke", "--data-dir", unreachable, "--dry-run", "--format", "csv"]
    assert main([*command, "--corpus", "ptb", "--corpus", "pydocs"]) == 0
    shown = capsys.readouterr()
    assert shown.out.count("\n") == 1 + 2 * 4
    assert shown.err.startswith("A dry run copies nothing from s3://bucket/data")
    assert main([*command, "--corpus", "mine"]) == 2
    assert "corpus check mine --data-dir s3://bucket/data" in capsys.readouterr().err


def test_retry_takes_the_options_of_run_but_lists_no_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retry", "gss_grid", "--dry-run"]) == 2
    assert "--dry-run and --format are for run" in capsys.readouterr().err
    for command, listed in (("run", True), ("retry", False)):
        assert main([command, "--help"]) == 0
        shown = capsys.readouterr().out
        assert [option in shown for option in ("--dry-run", "--format", "--set")] == [listed, listed, True]


@pytest.mark.parametrize(("code", "status"), [(None, 0), (3, 3), ("no text", 1)])
def test_what_ends_the_program_gives_its_exit_status(
    code: object, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("orchestrator.command.app.app", lambda **_: sys.exit(code))  # type: ignore[arg-type]
    assert main(["studies"]) == status
    assert capsys.readouterr().err == ("error: no text\n" if code == "no text" else "")


def test_every_command_is_told_from_the_name_of_a_study() -> None:
    group: Any = get_command(app)
    assert {*COMMANDS} == {*group.commands}
