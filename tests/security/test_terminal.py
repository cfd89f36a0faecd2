"""What a store holds commands no terminal, and every character of it reaches a file."""

from __future__ import annotations

import io
import json
import os
import pty
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from rich.live import Live
from rich.table import Table
from rich.text import Text
from sqlalchemy import make_url
from sqlalchemy.exc import OperationalError

from orchestrator.store import database
from orchestrator.store.opening import open_store
from orchestrator.store.records import StudyKey
from orchestrator.watch.console import ShownConsole
from tests.support import tiny_trial
from tests.support.command import ROOT, environment, sweep
from tests.support.store_rows import RUN, forge, outcome, planned
from trainables.__main__ import _print_note
from trainables.__main__ import main as train_one
from trainables.errors import COMMANDS, terminal_text
from trainables.trial_folder.folder import TrialFolder
from trainables.trial_folder.outcome import TrialOutcome

HOSTILE = "a\x1b]0;owned\x1b[2J\x9b31m\u202ecba\x7f"


def test_what_commands_a_terminal_is_spelled_out_and_no_other_text_changes() -> None:
    assert terminal_text("a\x1b[2Jb\x07") == "a\\x1b[2Jb\\x07"
    assert terminal_text("\u202ecba \ud800") == "\\u202ecba \\ud800"
    for text in ("tab\tand\nline", "Zoë, 東京, 🙂 ·", "[red]x[/red]", "c\\x1b"):
        assert terminal_text(text) == text


def test_texts_and_tables_and_live_pictures_are_spelled_out_while_colours_stay() -> None:
    stream = io.StringIO()
    console = ShownConsole(
        file=stream, force_terminal=True, width=200, color_system="standard", highlight=False
    )
    table = Table()
    table.add_column(Text(HOSTILE))
    table.add_row(Text(HOSTILE, style="red"))
    console.print(HOSTILE, markup=False)
    console.print(table)
    with Live(Text(HOSTILE), console=console):
        pass
    said = stream.getvalue()
    # A live picture is drawn at its start and at its end; a table may cut what is spelled out.
    assert said.count("a\\x1b]0;owned\\x1b[2J") == 3 and said.count("owned") == 5
    assert "\x1b[31m" in said, "the cell is red"
    assert not set(said) & set("\x07\x9b\u202e\x7f")
    assert "\x1b]0" not in said and "\x1b[2J" not in said


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    """With a store of hostile texts."""
    trial = planned(1)
    with open_store(f"sqlite:///{tmp_path}/results.db") as store:
        for scale in ("smoke", "quick"):
            store.register(StudyKey(study="gss_grid", scale=scale, corpus="pydocs"), [trial])
        run_id = store.begin_run(RUN)
        store.record(outcome(trial.trial_id, state="failed"), run_id=run_id, spectrum=None)
    url = f"sqlite:///{tmp_path}/results.db"
    forge(url, "study", corpus=HOSTILE)
    forge(url, "study_trial", name=HOSTILE)
    forge(url, "trial", outcome={"cause": HOSTILE, "environment": {}})
    return tmp_path


@pytest.mark.parametrize("form", ["table", "csv"])
def test_a_terminal_gets_no_command_from_a_store(storage: Path, form: str) -> None:
    for command in (("status",), ("results", "gss_grid")):
        arguments = [
            sys.executable,
            ROOT / "sweep.py",
            *command,
            "--storage",
            storage,
            "--format",
            form,
        ]
        here, there = pty.openpty()
        with os.fdopen(here, "rb", buffering=0) as terminal:
            process = subprocess.Popen(
                arguments, env=environment() | {"TERM": "dumb"}, stdout=there, stderr=there
            )
            os.close(there)
            said = b""
            try:
                while block := terminal.read(1 << 16):
                    said += block
            except OSError:  # of a terminal whose last process has ended
                pass
            assert process.wait(60) == 0, said
        assert b"owned" in said
        assert not {b"\x07", b"\x9b", b"\x7f", b"\x1b]"} & {
            said[i : i + n] for n in (1, 2) for i in range(len(said))
        }


@pytest.fixture
def trial(tmp_path: Path) -> tuple[TrialOutcome, list[str]]:
    """With hostile texts in its result, and what shows it."""
    config = tiny_trial.trial()
    words = json.dumps(
        {"next": HOSTILE, "probability": 0.5, "rank": 1, "top": [[HOSTILE, 0.5]]},
        ensure_ascii=False,
    )
    outcome = TrialOutcome(
        trial_id=config.trial_id, state="done", measurements={"top_k@1": {"top_k even 1": words}}
    )
    TrialFolder(tmp_path, config.trial_id).write_result(outcome, None)
    (tmp_path / "config.json").write_text(config.canonical_json())
    return outcome, [str(tmp_path / "config.json"), "--directory", str(tmp_path)]


def test_a_terminal_gets_no_command_from_a_trials_result_and_a_program_every_character(
    trial: tuple[TrialOutcome, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome, command = trial
    assert train_one(command) == 0
    assert TrialOutcome.model_validate_json(capsys.readouterr().out) == outcome
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert train_one(command) == 0
    said = capsys.readouterr().out
    assert "owned" in said and not COMMANDS.search(said)


def test_a_terminal_gets_no_command_from_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    _print_note(HOSTILE)
    said = capsys.readouterr().err
    assert "owned" in said and not COMMANDS.search(said)


def test_a_terminal_gets_no_command_from_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = database.Database(make_url(f"sqlite:///{tmp_path}/x.db"))
    with opened.read():
        pass
    answer = sqlite3.OperationalError(HOSTILE)
    answer.sqlite_errorname = "SQLITE_BUSY"
    answers = [OperationalError("select", {}, answer)]

    def check_files() -> None:
        if answers:
            raise answers.pop()

    monkeypatch.setattr(opened, "_check_files", check_files)
    monkeypatch.setattr(database, "AGAIN_S", 0)
    with opened.read():
        pass
    opened.close()
    said = capsys.readouterr().err
    assert "owned" in said and not COMMANDS.search(said)


def test_a_file_gets_every_character(storage: Path) -> None:
    answer = sweep("results", "gss_grid", "--storage", storage, "--format", "csv")
    assert HOSTILE in answer.stdout
    assert "\x1b" not in answer.stderr, "which of the variants this is"
