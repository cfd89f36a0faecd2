from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from orchestrator.command import plan_listing
from orchestrator.plan import Plan
from orchestrator.storage import FolderStorage
from orchestrator.store import STATES, Store, StudyKey, StudySummary
from orchestrator.sweep import retry_command, write_study_file
from orchestrator.view.overview import content, progress
from orchestrator.view.source import Overview, Source
from search_spaces.command_study import define
from tests.support.command import sweep
from tests.support.store_rows import KEY, RUN, ids, outcome, plan
from trainables.errors import PROGRAM


def summary(scale: str, **counts: int) -> StudySummary:
    every = {state: counts.get(state, 0) for state in STATES}
    return StudySummary(
        key=replace(KEY, scale=scale), planned_at=datetime(2026, 1, 1, tzinfo=UTC), counts=every
    )


def studies(*summaries: StudySummary) -> list[dict[str, Any]]:
    overview = Overview(studies=[], running=[], lost=[], retries=[], seconds_left={})
    head, body = progress(summaries, overview).children.children
    titles = [cell.children for cell in head.children.children]
    cells = [[cell.children for cell in row.children] for row in body.children]
    return [
        dict(zip(titles, [row[0].children, [row[1].value, row[1].max], *row[2:]], strict=True))
        for row in cells
    ]


def test_pruned_trials_count_as_progress() -> None:
    first, second = studies(summary("small", done=17, pruned=4, failed=1), summary("quick", done=2))
    assert first[""] == ["21", "22"] and second[""] == ["2", "2"]
    assert (first["done"], first["stopped early"], first["trials"], first["without a result"]) == (
        17,
        4,
        22,
        1,
    )
    assert "small" in first["study"] and second["stopped early"] == 0


def test_shared_failure_is_listed_once(store: Store, tmp_path: Path) -> None:
    trials, other = plan(2), replace(KEY, study="seeds", scale="smoke")
    store.register(KEY, trials)
    store.register(other, trials[:1])
    store.register(replace(KEY, study="averaging"), trials[1:])
    store.claim(ids(trials), owner="a", lease_s=60)
    failed = outcome(trials[0].trial_id, state="failed", measurements={})
    store.record(failed, run_id=store.begin_run(RUN), spectrum=None, attempt=1)
    parts = content(Source(str(tmp_path / "results.db"), str(tmp_path)).overview())
    heading = next(part for part in parts if getattr(part, "id", None) == "lost")
    assert heading.children == "Without a result: 1"
    assert parts[-1].children.splitlines() == [
        retry_command(key, key.study) for key in (other, KEY)
    ]


def test_retry_of_command_is_its_own(store: Store, tmp_path: Path) -> None:
    typed = {"--grid": ["a=1,2"], "--metric": ["loss"]}
    definition = define("./train.sh {a}", typed)
    key = StudyKey(study="train", scale="full", corpus="none")
    store.register(key, plan(1))
    storage = FolderStorage(tmp_path)
    write_study_file(storage, key, datetime.now(UTC), (), file=definition)
    failed = outcome(plan(1)[0].trial_id, state="failed", measurements={})
    store.record(failed, run_id=store.begin_run(RUN), spectrum=None)
    [line] = Source(str(tmp_path / "results.db"), str(tmp_path)).overview().retries
    words = shlex.split(line.removeprefix(PROGRAM))
    assert words == [
        "command",
        "./train.sh {a}",
        *shlex.split("--grid a=1,2 --metric loss --retry"),
    ]


def test_diverged_trial_gets_no_retry(store: Store, tmp_path: Path) -> None:
    store.register(KEY, plan(1))
    diverged = outcome(plan(1)[0].trial_id, state="diverged", measurements={})
    store.record(diverged, run_id=store.begin_run(RUN), spectrum=None)
    page = str(content(Source(str(tmp_path / "results.db"), str(tmp_path)).overview()))
    assert "other settings" in page and "retry" not in page


BROUGHT = {
    "search": ("fair_capacity", "--search", "random"),
    "contexts": ("qualitative", "--contexts", "my words.json"),
    "model": ("gss_grid", "--model", "transformer", "--set", "training.epochs=2,3"),
    "several lists": ("layer_gates", "--set", "learning_rates=[0.01, 0.02],[0.03]"),
    "folder of data": ("gss_grid", "--corpus", "small"),
}


@pytest.mark.parametrize("typed", BROUGHT.values(), ids=BROUGHT)
def test_study_command_plans_that_study(
    typed: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my words.json").write_text('[{"last_token_index": 5}]')
    for folder in (tmp_path / "data" / "small", tmp_path / "small"):
        folder.mkdir(parents=True)
        for split in ("train", "valid", "test"):
            (folder / f"{split}.txt").write_text(f"open {folder.parent.name} and read it\n" * 100)
    monkeypatch.chdir(tmp_path)
    plans: list[Plan] = []
    monkeypatch.setattr(
        plan_listing, "print_plans", lambda listing, *_, **__: plans.extend(listing)
    )
    assert sweep(*typed, "--scale", "smoke", "--dry-run", "--format", "json").returncode == 0
    key = plans[0].key
    program, retry, *words = shlex.split(retry_command(key, key.study).removeprefix("python "))
    assert f"python {program}" == PROGRAM and retry == "retry"
    answer = sweep(*words, "--dry-run", "--format", "json")
    assert answer.returncode == 0, answer.stderr
    first, again = plans
    assert again.key == first.key and again.trials == first.trials
