from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from rich.live import Live
from rich.table import Table
from rich.text import Text

from orchestrator.store import StudyKey, open_store
from orchestrator.watch import ShownConsole
from tests.support import tiny_trial
from tests.support.command import ROOT, environment, sweep
from tests.support.store_rows import RUN, forge, outcome, planned
from trainables.__main__ import _print_note
from trainables.__main__ import main as train_one
from trainables.errors import CONTROL_CHARACTERS, terminal_text
from trainables.trial_folder import TrialFolder, TrialOutcome

HOSTILE = "a\x1b]0;owned\x1b[2J\x9b31m\u202ecba\x7f"


def test_only_control_characters_are_escaped() -> None:
    assert terminal_text("a\x1b[2Jb\x07") == "a\\x1b[2Jb\\x07"
    assert terminal_text("\u202ecba \ud800") == "\\u202ecba \\ud800"
    for text in ("tab\tand\nline", "Zoë, 東京, 🙂 ·", "[red]x[/red]", "c\\x1b"):
        assert terminal_text(text) == text


def test_tables_keep_only_their_colours() -> None:
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
    output = stream.getvalue()
    # A live display is drawn at its start and end; a table may shorten the escaped text.
    assert output.count("a\\x1b]0;owned\\x1b[2J") == 3 and output.count("owned") == 5
    assert "\x1b[31m" in output, "the cell is red"
    assert not set(output) & set("\x07\x9b\u202e\x7f")
    assert "\x1b]0" not in output and "\x1b[2J" not in output


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    trial = planned(1)
    url = f"sqlite:///{tmp_path}/results.db"
    with open_store(url) as store:
        for scale in ("smoke", "quick"):
            store.register(StudyKey(study="gss_grid", scale=scale, corpus="pydocs"), [trial])
        failed = outcome(trial.trial_id, state="failed")
        store.record(failed, run_id=store.begin_run(RUN), spectrum=None)
    forge(url, "study", corpus=HOSTILE)
    forge(url, "study_trial", name=HOSTILE)
    forge(url, "trial", outcome={"cause": HOSTILE, "environment": {}})
    return tmp_path


@pytest.mark.parametrize(
    "command", [("status", "--format", "table"), ("results", "gss_grid", "--format", "csv")]
)
def test_store_cannot_command_the_terminal(storage: Path, command: tuple[str, ...]) -> None:
    """The test needs a real terminal, because output to a file keeps every character."""
    words = [sys.executable, str(ROOT / "sweep.py"), *command, "--storage", str(storage)]
    here, there = pty.openpty()
    with os.fdopen(here, "rb", buffering=0) as terminal:
        process = subprocess.Popen(
            words, env=environment() | {"TERM": "dumb"}, stdout=there, stderr=there
        )
        os.close(there)
        output = b""
        with suppress(OSError):  # the terminal closes with its last process
            while block := terminal.read(1 << 16):
                output += block
        assert process.wait(60) == 0, output
    assert b"owned" in output
    assert not [command for command in (b"\x07", b"\x9b", b"\x7f", b"\x1b]") if command in output]
    if "csv" in command:
        answer = sweep(*command, "--storage", storage)
        assert HOSTILE in answer.stdout and "\x1b" not in answer.stderr


def test_trial_cannot_command_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program that reads the result must still receive every character."""
    config = tiny_trial.trial()
    words = {"next": HOSTILE, "probability": 0.5, "rank": 1, "top": [[HOSTILE, 0.5]]}
    top_k = {"top_k even 1": json.dumps(words, ensure_ascii=False)}
    done = TrialOutcome(trial_id=config.trial_id, state="done", measurements={"top_k@1": top_k})
    TrialFolder(tmp_path, config.trial_id).write_result(done, None)
    (tmp_path / "config.json").write_text(config.model_dump_json())
    command = [str(tmp_path / "config.json"), "--directory", str(tmp_path)]
    assert train_one(command) == 0
    assert TrialOutcome.model_validate_json(capsys.readouterr().out) == done
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert train_one(command) == 0
    _print_note(HOSTILE)
    for stream_text in capsys.readouterr():
        assert "owned" in stream_text and not CONTROL_CHARACTERS.search(stream_text)
