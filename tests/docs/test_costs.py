"""What the pages say of times, memory and numbers of trials is what the plan says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.command.app import main
from orchestrator.command.plan_listing import print_plans
from orchestrator.plan import default_corpora, make_plan, scale_named
from search_spaces.catalog import NAMES, load_study
from tests.support.command import ROOT

TODAY = ("softcap", "spam", "head_rank", "saturation", "confounders")
"""The studies that are not of the papers."""
TOTAL = re.compile(r": ([\d,]+) (?:different )?trials, estimated (.+) with ([\d.]+) GB\.")


def page(*path: str) -> str:
    """Its text, with each run of white space as one space."""
    return " ".join(ROOT.joinpath(*path).read_text(encoding="utf-8").split())


def planned(
    study: str, scale: str, capsys: pytest.CaptureFixture[str]
) -> tuple[str, list[str], str]:
    """Of the dry run of a study, or of all: trials, times (GPU-hours and core time, or core time
    alone), memory."""
    capsys.readouterr()
    assert main([study, "--scale", scale, "--dry-run"]) == 0
    return last_total(capsys.readouterr().out)


def last_total(shown: str) -> tuple[str, list[str], str]:
    trials, times, memory = TOTAL.findall(shown)[-1]
    return trials, times.split(", or "), memory


def test_times_and_memory_of_the_scales_are_those_of_the_dry_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = page("docs", "run.md")
    for scale in ("quick", "small", "paper"):
        _, of_grid, _ = planned("gss_grid", scale, capsys)
        trials, of_all, memory = planned("all", scale, capsys)
        row = re.search(rf"\| `{scale}` \| ([^|]*) \| ([^|]*) \| up to ([\d.]+) GB \|", said)
        assert row is not None, f"docs/run.md has no times of {scale}"
        assert row[1].startswith(of_grid[0]) and row[2].startswith(of_all[0]) and row[3] == memory
        assert scale != "paper" or row[2].endswith(f"; {trials} trials")


def test_the_papers_studies_take_at_their_scale_what_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scale = scale_named("paper")
    studies = [load_study(name) for name in NAMES if name not in TODAY]
    assert len(studies) == 16
    plans = [
        make_plan(study, scale, corpus)
        for study in studies
        for corpus in default_corpora(study, scale)
    ]
    print_plans(plans, "table", gpus=[1.0] * len(plans), measured=())
    trials, times, _ = last_total(capsys.readouterr().out)
    hours = times[0].removesuffix(" GPU-hours")
    assert (
        f"{trials} trainings of the papers' studies, by the published times {hours} hours of a V100"
        in page("README.md")
    )
    assert f"{hours} of them, {trials} trials, are the papers'" in page("docs", "cluster.md")
    assert f"{hours} of them for the papers' studies" in page("docs", "run.md")


def pages() -> list[Path]:
    return sorted(ROOT.joinpath("docs").glob("*.md"))


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_a_page_begins_with_its_command(path: Path) -> None:
    """Or, for who programs, with what to import."""
    first = "\n".join(path.read_text(encoding="utf-8").splitlines()[:5])
    assert "python sweep.py " in first or "from orchestrator import" in first


def test_the_readme_is_short() -> None:
    assert len(ROOT.joinpath("README.md").read_text(encoding="utf-8").splitlines()) <= 130
