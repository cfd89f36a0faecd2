"""A bundle of reports, copied elsewhere."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest

from orchestrator.store import PlannedTrial, Store, StudyKey
from tests.orchestrator.command.conftest import Typed
from tests.support.store_rows import RUN, SPECTRUM, fail, outcome
from trainables.config import CorpusConfig, GssConfig, TrialConfig

KEY = StudyKey(study="gss_grid", scale="quick", corpus="pydocs")


@pytest.fixture(autouse=True)
def variants(store: Store) -> None:
    """Two variants of a study."""
    corpus = CorpusConfig(name="pydocs", sha256="0" * 64)
    trials = [
        PlannedTrial.of(
            TrialConfig(seed=1, corpus=corpus, output_layer=GssConfig(c=c, k=2.0)),
            f"gss c={c:g} k=2",
        )
        for c in (0.0, 1.0, 2.0)
    ]
    for key in (KEY, replace(KEY, overrides='{"settings":{"training.epochs":[3]}}')):
        store.register(key, trials)
    run_id = store.begin_run(RUN)
    for trial in trials[:2]:
        store.record(outcome(trial.trial_id), run_id=run_id, spectrum=SPECTRUM)
    fail(store, trials[2].trial_id, cause="RuntimeError: no", run_id=run_id)


def pages(folder: Path) -> set[str]:
    """The pages that index.html leads to, at once or by way of others; every link is a file."""
    found, waiting = set[Path](), [folder / "index.html"]
    while waiting:
        page = waiting.pop()
        found.add(page)
        for link in re.findall(r'\b(?:href|src)="([^"#]+)', page.read_text()):
            if link.startswith("data:"):
                continue
            assert "//" not in link, "relative links"
            target = (page.parent / unquote(link)).resolve()
            assert target.is_file() and target.is_relative_to(folder), link
            if target.suffix == ".html" and target not in {*found, *waiting}:
                waiting.append(target)
    return {str(page.relative_to(folder)) for page in found}


def test_every_link_of_a_copied_bundle_works(typed: Typed, tmp_path: Path) -> None:
    made = tmp_path / "a bundle"
    assert typed("report", "all", "--bundle", made).returncode == 0
    copy = shutil.copytree(made, tmp_path / "elsewhere" / "x")
    shutil.rmtree(made)
    assert pages(copy) == {str(path.relative_to(copy)) for path in copy.rglob("*.html")}
    assert len(pages(copy)) == 1 + 2
    contents = [path.read_bytes() for path in copy.rglob("*") if path.is_file()]
    for here in (tmp_path, Path.cwd()):
        assert not any(str(here).encode() in content for content in contents)
    assert not (tmp_path / "reports").exists(), "the storage's own reports are left alone"


def test_a_bundle_is_written_again(typed: Typed, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    command = ("report", "gss_grid", "--bundle", bundle)
    assert typed(*command).returncode == typed(*command).returncode == 0
    assert len(list(bundle.glob("*/report.html"))) == 1
    assert typed(*command, "--set", "training.epochs=3").returncode == 0
    assert sum(page.endswith("/report.html") for page in pages(bundle)) == 2


def test_other_folders_are_left_alone(typed: Typed, tmp_path: Path) -> None:
    def refused(folder: Path) -> bool:
        return typed("report", "gss_grid", "--bundle", folder).returncode == 2

    full = tmp_path / "full"
    full.mkdir()
    for name in ("thesis.tex", "bundle.txt"):
        (full / name).write_text("mine")
        assert refused(full) and (full / name).read_text() == "mine"
        assert [path.name for path in full.iterdir()] == [name]
        assert refused(full / name)
        (full / name).unlink()
    assert typed("report", "gss_grid", "--bundle", full).returncode == 0
    (full / "link").symlink_to(tmp_path)
    assert refused(full)
    assert typed("report", "rank_metrics", "--bundle", tmp_path / "none").returncode == 2
    assert not (tmp_path / "none").exists()
