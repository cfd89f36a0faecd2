"""Parses the commands that the pages for programs and agents name with the real command line."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from orchestrator.command.app import COMMANDS
from tests.support.command import ROOT

AGENTS, JSON = ROOT / "AGENTS.md", ROOT / "docs" / "json.md"
SKILL = ROOT / "skills" / "sweep-experiments" / "SKILL.md"
COMMAND = re.compile(r"python sweep\.py ([^`|\n#]+)")
PLACEHOLDERS = {"X": "0.5", "N": "3", "MAX": "30"}


@pytest.mark.parametrize("page", [AGENTS, JSON, SKILL], ids=lambda page: page.name)
def test_commands_of_pages_are_accepted(page: Path) -> None:
    lines = COMMAND.findall(page.read_text(encoding="utf-8"))
    assert len(lines) > 5
    for line in lines:
        words = [PLACEHOLDERS.get(word, word) for word in shlex.split(line)]
        if words[0] != "prove-gpu":
            group: Any = COMMANDS.make_context("sweep.py", list(words))
            rest = [*getattr(group, "_protected_args", []), *group.args]
            name, command, rest = COMMANDS.resolve_command(group, rest)
            assert name == (words[0] if words[0] in COMMANDS.commands else "run")
            command.make_context(name, rest, parent=group)


def test_pages_for_agents_are_short() -> None:
    lengths = [len(page.read_text(encoding="utf-8").splitlines()) for page in (AGENTS, SKILL)]
    assert lengths[0] <= 100 and lengths[1] <= 80


def test_skill_has_name_and_description() -> None:
    _, head, _ = SKILL.read_text(encoding="utf-8").split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert fields["name"] == SKILL.parent.name and 0 < len(fields["description"]) <= 1024
