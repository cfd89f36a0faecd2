"""A study of published numbers goes on without the files that cannot be had: the trials that need
them wait."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.cluster.run_options import RunOptions
from orchestrator.plan import Plan, PlanRequest, make_plan, scale_named
from orchestrator.storage.storage import FolderStorage
from orchestrator.store import open_store
from orchestrator.sweep import Typed, run_study
from orchestrator.sweep import corpus_files as texts
from search_spaces.catalog import load_study
from tests.support.store_rows import RUN
from trainables.errors import UserError


@pytest.mark.parametrize(
    ("absent", "waiting"),
    [
        ((), []),
        (("ptb",), ["word pairs ptb"]),
        (("word-similarity",), ["word pairs ptb", "word pairs wikitext-2"]),
    ],
)
def test_what_is_missing_is_said_and_just_the_trials_that_need_it_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absent: tuple[str, ...], waiting: list[str]
) -> None:
    def bring(name: str, data_dir: Path, **_: object) -> None:
        assert data_dir == tmp_path
        if name in absent:
            raise UserError(f"{name} cannot be had")

    monkeypatch.setattr(texts, "ensure", bring)
    plan = make_plan(
        load_study("published"), scale_named("quick"), "none", PlanRequest(data_dir=tmp_path)
    )
    shown = io.StringIO()
    withheld = texts.ensure_texts(plan, Console(file=shown, width=200))
    assert [trial.name for trial in plan.trials if trial.trial_id in withheld] == waiting
    said = shown.getvalue().splitlines()
    assert said == [f"{name} cannot be had; the study goes on without it." for name in absent]


TYPED = Typed(study="gss_grid")


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Plan, RunOptions]:
    """A plan whose text cannot be had."""

    def refuse(name: str, **_: object) -> None:
        raise UserError(f"{name} cannot be had")

    monkeypatch.setattr(texts, "ensure", refuse)
    plan = make_plan(
        load_study("gss_grid"), scale_named("smoke"), "ptb", PlanRequest(data_dir=tmp_path)
    )
    return plan, RunOptions(storage=FolderStorage(tmp_path), store_url=str(tmp_path / "results.db"))


def test_a_run_whose_text_cannot_be_had_is_not_announced(refused: tuple[Plan, RunOptions]) -> None:
    shown = io.StringIO()
    with pytest.raises(UserError, match="ptb cannot be had"):
        run_study(*refused, TYPED, Console(file=shown))
    assert shown.getvalue() == ""


def test_a_retry_whose_text_cannot_be_had_forgets_nothing(refused: tuple[Plan, RunOptions]) -> None:
    plan, options = refused
    trial = plan.trials[0].planned()
    with open_store(options.store_url) as store:
        store.register(plan.key, [trial])
        store.fail(trial.trial_id, cause="a cause", run_id=store.begin_run(RUN))
    with pytest.raises(UserError, match="ptb cannot be had"):
        run_study(plan, options, TYPED, Console(file=io.StringIO()), again=True)
    with open_store(options.store_url) as store:
        assert store.states([trial.trial_id]) == {trial.trial_id: "failed"}
