from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.cluster import RunOptions
from orchestrator.plan import Plan, PlanRequest, make_plan
from orchestrator.storage import FolderStorage
from orchestrator.store import Store, open_store
from orchestrator.sweep import Typed, corpus_files, remaining_work, retry, run_study
from orchestrator.sweep.corpus_files import ensure_texts
from orchestrator.sweep.retry import open_retries
from orchestrator.sweep.study_file import check_name, write_study_file
from orchestrator.watch import Listener
from search_spaces.catalog import load_study
from search_spaces.scales import SCALES
from tests.support.store_rows import KEY, RUN, fail, ids, outcome, plan
from trainables.errors import UserError

TYPED = Typed(study="gss_grid")


@pytest.fixture(params=["text", "GPU"])
def refused(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Plan, RunOptions]:
    def refuse(*_: object, **__: object) -> None:
        raise UserError(f"no {request.param} here")

    if request.param == "text":
        monkeypatch.setattr(corpus_files, "ensure", refuse)
    else:
        monkeypatch.setattr(remaining_work, "check_torch_gpu", refuse)
        monkeypatch.setattr(retry, "check_torch_gpu", refuse)
    corpus = "ptb" if request.param == "text" else "pydocs"
    options = RunOptions(
        storage=FolderStorage(tmp_path),
        store_url=str(tmp_path / "results.db"),
        gpus_per_trial=0 if request.param == "text" else 1,
    )
    plan_request = PlanRequest(data_dir=tmp_path)
    return make_plan(load_study("gss_grid"), SCALES["smoke"], corpus, plan_request), options


def test_refused_run_is_not_announced(refused: tuple[Plan, RunOptions]) -> None:
    output = io.StringIO()
    with pytest.raises(UserError, match="here"):
        run_study(*refused, TYPED, Console(file=output), Listener())
    assert output.getvalue() == ""
    with open_store(refused[1].store_url) as store:
        texts = refused[0].corpus.name == "ptb"
        assert [summary.key for summary in store.studies()] == [] or not texts


def test_refused_retry_forgets_nothing(refused: tuple[Plan, RunOptions]) -> None:
    planned, options = refused
    trial = planned.trials[0]
    with open_store(options.store_url) as store:
        store.register(planned.key, [trial])
        fail(store, trial.trial_id, cause="a cause", run_id=store.begin_run(RUN))
    with pytest.raises(UserError, match="here"):
        run_study(planned, options, TYPED, Console(file=io.StringIO()), Listener(), again=True)
    with open_store(options.store_url) as store:
        assert store.states([trial.trial_id]) == {trial.trial_id: "failed"}


@pytest.mark.parametrize(
    ("absent", "waiting"),
    [
        ({"ptb"}, ["word pairs ptb"]),
        ({"word-similarity"}, ["word pairs ptb", "word pairs wikitext-2"]),
        (set(), []),
    ],
)
def test_only_trials_without_text_wait(
    absent: set[str], waiting: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ensure(name: str, **_: object) -> None:
        if name in absent:
            raise UserError(f"{name} cannot be had")

    monkeypatch.setattr(corpus_files, "ensure", ensure)
    planned = make_plan(load_study("published"), SCALES["smoke"], "none")
    output = io.StringIO()
    withheld = ensure_texts(planned, Console(file=output, width=200))
    assert [trial.name for trial in planned.trials if trial.trial_id in withheld] == waiting
    assert output.getvalue().splitlines() == [
        f"{name} cannot be had; the study continues without it." for name in absent
    ]


def test_second_file_of_a_name_is_refused(tmp_path: Path) -> None:
    first, second = tmp_path / "lr.py", tmp_path / "lr2.py"
    first.write_text("rates = 1, 2")
    second.write_text("rates = 3, 4")
    storage = FolderStorage(tmp_path)
    write_study_file(storage, KEY, datetime.now(UTC), plan(0), file=str(first))
    check_name(storage, KEY, str(first))
    check_name(storage, replace(KEY, study="other"), str(second))
    copied = tmp_path / "copy" / "lr.py"
    copied.parent.mkdir()
    copied.write_text("rates = 5, 6")
    check_name(storage, KEY, str(copied))
    for key in (KEY, replace(KEY, scale="paper")):
        with pytest.raises(UserError, match=r"lr2\.py.*lr\.py.*Rename"):
            check_name(storage, key, str(second))
    first.rename(tmp_path / "renamed.py")
    check_name(storage, KEY, str(second))


def test_interrupted_retry_resumes_its_trials(store: Store) -> None:
    trials = plan(4)
    never_begun, reset, running, failed_again = ids(trials)
    store.register(KEY, trials)
    run_id = store.begin_run(RUN)
    attempts = store.claim([reset, running, failed_again], owner="a", lease_s=60)
    for trial_id in (reset, failed_again):
        failed = outcome(trial_id, state="failed")
        store.record(failed, run_id=run_id, spectrum=None, attempt=attempts[trial_id])
    store.reset([reset])
    open_ids = [trial.trial_id for trial in open_retries(trials, store, KEY)]
    assert open_ids == [reset, running] and never_begun not in open_ids
