from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st

from orchestrator.store import PlannedTrial, StudyKey, open_store
from orchestrator.watch.tensorboard import TensorBoard
from orchestrator.words import file_name
from tests.security.conftest import Cases, check_answer
from tests.support.hostile import texts
from tests.support.store_rows import RUN, forge, outcome, planned
from tests.support.writes import outside, written
from trainables.errors import UserError
from trainables.trial_folder import trial_directory

UP = "/../../../outside"


def files(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


@pytest.mark.chaos(300, 5_000)
def test_texts_have_distinct_file_names(tmp_path: Path, every_case: Cases) -> None:
    def check(pair: tuple[str, str]) -> None:
        names = [file_name(text) for text in pair]
        for name in names:
            assert (tmp_path / name).parent == tmp_path and name not in ("", ".", "..")
            assert (
                name.isprintable() and not name.startswith(("-", ".")) and len(name.encode()) < 200
            )
            (tmp_path / name).touch()
            assert file_name(name) == name
        assert (names[0] == names[1]) == (pair[0] == pair[1])

    every_case(st.tuples(texts, texts), check)


def test_plain_names_stay_unchanged() -> None:
    for name in (
        "gss_grid-quick-ptb",
        "softmax, training.learning_rate=20 seed=1",
        "gss c=-1.5 k=2.5",
        "Zoë",
    ):
        assert file_name(name) == name


def test_reports_stay_in_storage(tmp_path: Path) -> None:
    storage, trial = tmp_path / "deep" / "er" / "results", planned(1)
    url = f"sqlite:///{storage}/results.db"
    with open_store(url) as store:
        store.register(StudyKey(study="gss_grid", scale="smoke", corpus="pydocs"), [trial])
        store.record(outcome(trial.trial_id), run_id=store.begin_run(RUN), spectrum=None)
    forge(url, "study", corpus=UP, scale=UP)
    before = files(tmp_path) - files(storage)
    for command in (("report", "gss_grid"), ("report", "all")):
        assert check_answer(*command, "--storage", storage, allowed=storage).returncode == 0
    assert files(tmp_path) - files(storage) == before


@pytest.mark.parametrize("name", [UP, "..", "../x", "/outside", "a\0b"])
def test_tensorboard_writes_inside_its_folder(tmp_path: Path, name: str) -> None:
    storage = tmp_path / "deep" / "er" / "results"
    log = TensorBoard(StudyKey(study="s", scale="quick", corpus=name), storage)
    with written() as paths:
        curves = log.begin(PlannedTrial(trial_id="0" * 64, name=name, config={}))
        curves.end("failed", "cause", {})
    assert paths and outside(paths, storage / "tensorboard") == []
    assert files(tmp_path) - files(storage) == {
        tmp_path / "deep",
        tmp_path / "deep" / "er",
        storage,
    }


@pytest.mark.parametrize(
    "trial_id", ["../../outside", "/outside", "", "0" * 63, "0" * 64 + "\n", "A" * 64]
)
def test_odd_trial_id_is_refused(tmp_path: Path, trial_id: str) -> None:
    with pytest.raises(UserError, match="hexadecimal"):
        trial_directory(tmp_path, trial_id)
