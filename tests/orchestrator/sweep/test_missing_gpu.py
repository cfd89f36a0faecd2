"""A GPU that is not there is said before the store remembers or forgets anything."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.cluster.run_options import RunOptions
from orchestrator.plan import Plan, make_plan, scale_named
from orchestrator.storage.storage import FolderStorage
from orchestrator.store import open_store
from orchestrator.sweep import Typed, study_run
from search_spaces.catalog import load_study
from tests.support.store_rows import RUN
from trainables.errors import UserError

TYPED = Typed(study="gss_grid")


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Plan, RunOptions]:
    """A plan whose trials ask for a GPU, on a machine without one."""

    def missing(_configs: object) -> None:
        raise UserError("no GPU here")

    monkeypatch.setattr(study_run, "check_torch_gpu", missing)
    plan = make_plan(load_study("gss_grid"), scale_named("smoke"), "pydocs")
    storage = FolderStorage(tmp_path)
    return plan, RunOptions(
        storage=storage, store_url=str(tmp_path / "results.db"), gpus_per_trial=1
    )


def test_a_run_without_its_gpu_registers_nothing(asked: tuple[Plan, RunOptions]) -> None:
    plan, options = asked
    with pytest.raises(UserError, match="no GPU here"):
        study_run.run_study(plan, options, TYPED, Console(file=io.StringIO()))
    with open_store(options.store_url) as store:
        assert store.studies() == [] and store.trials(plan.key) == []


def test_a_retry_without_its_gpu_forgets_nothing(asked: tuple[Plan, RunOptions]) -> None:
    plan, options = asked
    trial = plan.trials[0].planned()
    with open_store(options.store_url) as store:
        store.register(plan.key, [trial])
        store.fail(trial.trial_id, cause="a cause", run_id=store.begin_run(RUN))
    with pytest.raises(UserError, match="no GPU here"):
        study_run.run_study(plan, options, TYPED, Console(file=io.StringIO()), again=True)
    with open_store(options.store_url) as store:
        assert store.states([trial.trial_id]) == {trial.trial_id: "failed"}
