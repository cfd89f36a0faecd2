"""Write docs/commands.md, the reference of the commands, from the output of their --help.

python docs/build_commands.py            # write the page
python docs/build_commands.py --check    # exit status 1 if the page is out of date"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

# The modules below read the help's width and the program's name when they are imported.
os.environ.update(COLUMNS="80", NO_COLOR="1", SWEEP_PROGRAM="python sweep.py")

from gpu_proof.command import main as prove_gpu
from orchestrator.command.app import COMMANDS

PAGE = Path(__file__).with_name("commands.md")
HEAD = """# Commands

What `python sweep.py COMMAND --help` prints. `python docs/build_commands.py` writes this page.
"""
OUT_OF_DATE = "docs/commands.md: out of date. Run: python docs/build_commands.py"


def names(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    for word, inner in getattr(command, "commands", {}).items():
        yield from names(inner, (*words, word))


def help_of(*words: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out), suppress(SystemExit):
        if words == ("prove-gpu",):  # has its own parser, see sweep.py
            prove_gpu(["--help"])
        COMMANDS.main([*words, "--help"], prog_name="sweep.py")
    return out.getvalue().strip()


def main() -> int:
    page = HEAD
    for words in names(COMMANDS):
        page += f"\n## {' '.join(words) or 'sweep.py'}\n\n```text\n{help_of(*words)}\n```\n"
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        print(OUT_OF_DATE, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
