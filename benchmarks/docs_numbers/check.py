"""Print every sentence and table of README.md, docs/results.md and docs/today.md that quotes a
measured number.

    python -m benchmarks.docs_numbers --storage runs            # exit status 1 if a page differs
    from the store python -m benchmarks.docs_numbers --storage runs --write    # put the store's
    numbers into the pages python -m benchmarks.docs_numbers --storage runs --rest     # also print
    what else the pages say with decimals

Each function in `PAGES` writes the lines of one section. The numbers come from the results store
(scale quick) and from the tables of the studies' reports. `--write` changes numbers only: new words
or rows are for a person to paste."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.docs_numbers import gss_grid, results, today
from benchmarks.docs_numbers.study_numbers import MINUS, Lines, Studies, StudyNumbers
from orchestrator.store import open_store
from trainables.errors import UserError

ROOT = Path(__file__).parents[2]
NUMBER = rf"[+{MINUS}]?\d(?:[\d,.]*\d)?(?:e-\d+)?"
PAGES: Mapping[str, Sequence[Callable[[Studies], Lines]]] = {
    "README.md": (gss_grid.front_page,),
    "docs/results.md": results.SECTIONS,
    "docs/today.md": today.SECTIONS,
}


def squeezed(text: str) -> str:
    """The text with single spaces: pages break their lines anywhere."""
    return " ".join(text.split())


def pattern(line: str) -> str:
    """A regular expression of the line with any other numbers and stars."""
    words = [
        re.escape(squeezed(f"x{part}x")[1:-1])
        for part in re.split(NUMBER, line.replace(" * |", " |"))
    ]
    spaced = NUMBER.join(words).replace(r"\ ", r"\s+")
    return spaced.replace(r"\s+\|", r"(?:\s+\*)?\s+\|")


def with_numbers(text: str, line: str) -> str:
    """The page with the numbers of the line, if it has the line once with other numbers."""
    found = [match.group() for match in re.finditer(pattern(line), text)]
    if len(found) != 1:
        return text
    spaces, words = re.findall(r"\s+", found[0]), line.split()
    if "\n" not in line and len(spaces) == len(words) - 1:
        line = "".join(word + space for word, space in zip(words, [*spaces, ""], strict=True))
    return text.replace(found[0], line)


def check(
    page: Path,
    functions: Sequence[Callable[[Studies], Lines]],
    of: Studies,
    *,
    write: bool,
    rest: bool,
) -> int:
    """Print the page's lines, and return how many of them the page does not contain or the store
    cannot fill."""
    lines, missing = list[str](), 0
    for function in functions:
        try:
            lines.extend(function(of))  # those before an error, too
        except (UserError, KeyError) as error:
            print(f"NOT FILLED: {page.name}, {function.__name__}: {error}")
            missing += 1
    text = page.read_text(encoding="utf-8")
    if write:
        for line in lines:
            text = text if squeezed(line) in squeezed(text) else with_numbers(text, line)
        page.write_text(text, encoding="utf-8")
    flat = squeezed(text)
    for line in lines:
        is_there = squeezed(line) in flat
        print(line if is_there else f"NOT IN {page.name}:\n{line}", end="\n\n")
        missing += not is_there
    for line in lines if rest else ():
        flat = flat.replace(squeezed(line), "")
    for sentence in re.split(r"(?<=[.|]) ", flat) if rest else ():
        if re.search(r"\d\.\d", sentence):
            print(f"OTHER NUMBERS IN {page.name}: {sentence}")
    return missing


def main(
    arguments: Sequence[str] | None = None, *, root: Path = ROOT, pages: Mapping[str, Any] = PAGES
) -> int:
    """The exit status: 1 if a line is missing from its page or cannot be filled, 2 without a
    store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--storage", default="results", help="the folder with results.db")
    parser.add_argument(
        "--write", action="store_true", help="put the store's numbers into the pages"
    )
    parser.add_argument(
        "--rest", action="store_true", help="print what else the pages say with decimals"
    )
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        try:
            store = stack.enter_context(
                open_store(f"sqlite:///{options.storage}/results.db", create=False)
            )
        except UserError as error:
            print(f"error: {error}")
            return 2

        @cache
        def of(name: str, overrides: str = "{}") -> StudyNumbers:
            return StudyNumbers(store, name, overrides)

        missing = {
            page: check(root / page, functions, of, write=options.write, rest=options.rest)
            for page, functions in pages.items()
        }
    for page, count in missing.items():
        print(f"{page}: {count} lines differ from the store or could not be filled")
    return int(any(missing.values()))
