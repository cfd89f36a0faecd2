from __future__ import annotations

import contextlib
import csv
import io
import re

import pytest

from orchestrator.command.app import main
from tests.support.command import sweep


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    "words",
    [
        ("studies",),
        ("gss_grid", "--scale", "paper", "--dry-run"),
    ],
)
def test_lists_fit_80_columns(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    with contextlib.redirect_stdout(Terminal()) as out:
        assert main(list(words)) == 0
    text = out.getvalue()
    table = [line for line in text.splitlines() if line[:1] in "┏┃┡│└"]
    assert len(table) > 10 and max(map(len, table)) <= 80
    assert sum(line.startswith("┏") for line in table) == 1 and "continued" not in text


def test_a_cpus_costs_are_core_time() -> None:
    printed = sweep("gss_grid", "--scale", "smoke", "--dry-run").stdout
    assert "core time" in printed and "GPU" not in printed
    assert re.search(r"4 trials, estimated [\d.]+ s of one core with up to [\d.]+ GB", printed)
    assert (
        "GPU" in sweep("gss_grid", "--scale", "smoke", "--dry-run", "--gpus-per-trial", "1").stdout
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--scale", "smoke"], "4 of 72 settings"),
        (["--scale", "quick"], "27 of 72 settings, 3 seeds of each setting"),
        (["--scale", "smoke", "--set", "training.epochs=1,2"], "8 of 144 settings"),
        (["--scale", "paper"], None),
    ],
)
def test_left_out_settings_are_counted(options: list[str], words: str | None) -> None:
    """The full grid has 9 bend positions and 8 slopes. Scale quick trains 9 x 3 of them."""
    listing = sweep("gss_grid", *options, "--corpus", "pydocs", "--dry-run").stdout
    assert words in listing if words else " settings" not in listing


def test_study_cost_ignores_other_studies() -> None:
    lines = sweep("all", "--scale", "smoke", "--dry-run").stdout.splitlines()
    for study in ("gss_grid", "fair_capacity", "dirichlet"):
        alone = sweep(study, "--scale", "smoke", "--dry-run").stdout.splitlines()
        costs = [line for line in alone if " of one core" in line]
        assert costs[0].startswith(f"{study}, scale smoke") and {*costs} <= {*lines}
    assert lines[-2].startswith("Total: ")


def test_study_list_counts_trials() -> None:
    output = sweep("studies", "--format", "csv").stdout
    rows = {row["study"]: row for row in csv.DictReader(io.StringIO(output))}
    assert rows["softcap"]["trials"] == "60 on ptb" and rows["spam"]["trials"] == "900"
    assert rows["seeds"]["trials"] == "55 on ptb, 55 on wikitext-2"
