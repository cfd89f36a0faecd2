from __future__ import annotations

from pathlib import Path

import pytest

from docs.build_site import build

PAGE = "# Start\n\n## A part\n\n[other](docs/other.md#of-it) [source](a.py) ![figure](docs/a.png)\n"
CONFIG = """[project]
site_name = "a site"
docs_dir = "site/pages"
site_dir = "site/html"
nav = [{ "Start" = "README.md" }, { "Use" = [{ "Other" = "docs/other.md" }] }]
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "zensical.toml").write_text(CONFIG)
    (tmp_path / "README.md").write_text(PAGE)
    (tmp_path / "docs" / "other.md").write_text(
        "# Other\n\n## Of it\n\n[back](../README.md#a-part)\n"
    )
    for name in ("a.py", "docs/a.png"):
        (tmp_path / name).write_text("")
    return tmp_path


def test_site_has_pages_and_their_files(repository: Path) -> None:
    assert build(repository) == []
    site = repository / "site" / "html"
    assert "Of it" in (site / "docs" / "other" / "index.html").read_text()
    assert (site / "a.py").exists() and (site / "docs" / "a.png").exists()


@pytest.mark.parametrize(
    "link", ["docs/missing.md", "docs/missing.png", "missing.py", "/docs/other.md", "../outside.md"]
)
def test_broken_link_fails(repository: Path, link: str) -> None:
    (repository / "README.md").write_text(f"{PAGE}\n[broken]({link})\n")
    [problem] = build(repository)
    assert link in problem


def test_broken_anchor_fails(repository: Path) -> None:
    (repository / "README.md").write_text(f"{PAGE}\n[broken](docs/other.md#missing) [b](#none)\n")
    problems = build(repository)
    assert [problem.split(":")[0] for problem in problems] == ["README.md", "README.md"]
    assert all("anchor" in problem for problem in problems)


def test_page_outside_the_navigation_fails(repository: Path) -> None:
    (repository / "docs" / "new.md").write_text("# New\n")
    [problem] = build(repository)
    assert "docs/new.md" in problem
