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
    visited, waiting = set[Path](), [folder / "index.html"]
    while waiting:
        page = waiting.pop()
        visited.add(page)
        for link in re.findall(r'\b(?:href|src)="([^"#]+)', page.read_text()):
            if link.startswith("data:"):
                continue
            assert "//" not in link, "relative links"
            target = (page.parent / unquote(link)).resolve()
            assert target.is_file() and target.is_relative_to(folder), link
            if target.suffix == ".html" and target not in {*visited, *waiting}:
                waiting.append(target)
    return {str(page.relative_to(folder)) for page in visited}


def test_links_of_copied_reports_work(typed: Typed, tmp_path: Path) -> None:
    assert typed("report", "all").returncode == 0
    assert typed("report", "gss_grid", "--set", "training.epochs=3").returncode == 0
    copy = shutil.copytree(tmp_path / "reports", tmp_path / "elsewhere" / "x")
    shutil.rmtree(tmp_path / "reports")
    assert pages(copy) == {str(path.relative_to(copy)) for path in copy.rglob("*.html")}
    assert len(pages(copy)) == 1 + 2
