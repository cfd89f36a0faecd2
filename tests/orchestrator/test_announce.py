"""The commands that a run tells its reader to type."""

from __future__ import annotations

import shlex

from orchestrator.announce import paper_command, retry_command


def test_retry_repeats_what_was_typed_but_no_password() -> None:
    typed = ("my study.py", "--scale", "quick", "--store", "postgresql+psycopg://me:s3cret@host/db", "--set", "seed=1")
    command = retry_command(typed)
    assert shlex.split(command)[:4] == ["python", "sweep.py", "retry", "my study.py"]
    assert shlex.split(command)[-2:] == ["--set", "seed=1"]
    assert "me:***@host/db" in command
    for secret in (f"--store=postgresql+psycopg://{place}" for place in ("u:s3cret@h/d", "h/d?user=u&password=s3cret")):
        assert "s3cret" not in retry_command(("gss_grid", secret))


def test_an_address_without_a_password_is_left_alone() -> None:
    typed = ("gss_grid", "--store", "postgresql+psycopg://me@host:5432/db", "--address", "10.0.0.1:6379")
    assert shlex.split(retry_command(typed))[3:] == list(typed)


def test_the_papers_command_names_the_study_as_it_was_typed() -> None:
    command = paper_command("./my study.py", ("ptb", "wikitext-2"), "quick")
    assert command == "python sweep.py './my study.py' --scale paper --corpus ptb --corpus wikitext-2"
    assert paper_command("gss_grid", ("ptb",), "paper") is None
