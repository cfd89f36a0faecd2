"""Build the documentation as a site with navigation and search: site/html/index.html. Print broken
links and anchors, and exit with status 1 if there are any.

The pages are copied to site/pages with every file that they link to, at their paths in the
repository, so that links work in both."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[\d;]*m")
WARNING = re.compile(r"Warning: (.+)\n.*\[ (.+) \]")
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


def navigated(entry: object) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict | list):
        for part in entry.values() if isinstance(entry, dict) else entry:
            yield from navigated(part)


def copy_pages(root: Path, pages: list[str], target: Path) -> list[str]:
    """Copy the pages and the files that they link to; return a sentence per problem."""
    written = {path.relative_to(root).as_posix() for path in (root / "docs").rglob("*.md")}
    problems = [f"zensical.toml: nav has no {name}" for name in sorted(written.difference(pages))]
    files = set(pages)
    for page in pages:
        if not (root / page).is_file():
            problems.append(f"zensical.toml: nav has {page}, which does not exist")
            continue
        text = CODE.sub("", (root / page).read_text(encoding="utf-8"))
        for link in LINK.findall(text):
            path = os.path.normpath(Path(page).parent / link)
            if path.startswith(("..", "/")) or not (root / path).is_file():
                problems.append(f"{page}: the link to {link} leads to no file of the repository")
            elif path.endswith(".md") and path not in pages:
                problems.append(f"{page}: {link} is not in the nav of zensical.toml")
            else:
                files.add(path)
    for name in files if not problems else ():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, target / name)
    return problems


def build(root: Path) -> list[str]:
    config = tomllib.loads((root / "zensical.toml").read_text(encoding="utf-8"))["project"]
    shutil.rmtree(root / "site", ignore_errors=True)
    if problems := copy_pages(root, [*navigated(config["nav"])], root / config["docs_dir"]):
        return problems
    zensical = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    built = subprocess.run(zensical, cwd=root, capture_output=True, text=True, check=False)
    printed = COLOUR.sub("", built.stdout + built.stderr)
    problems = [f"{place}: {problem}" for problem, place in WARNING.findall(printed)]
    return problems or ([printed] if built.returncode else [])


if __name__ == "__main__":
    sys.exit("\n".join(build(ROOT)) or 0)
