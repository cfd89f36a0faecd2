from __future__ import annotations

import io
import random
import shutil
from collections.abc import Callable
from contextlib import nullcontext, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import pytest

from orchestrator.command import main
from orchestrator.store import PlannedTrial, Position, Store, StudyKey, open_store
from tests.support.store_rows import (
    KEY,
    RUN,
    SPECTRUM,
    epoch,
    everything,
    execute,
    fail,
    forge,
    ids,
    outcome,
    plan,
)
from trainables.errors import UserError

PAGE = 4096
OTHER = StudyKey(study="tuned", scale="quick", corpus="pydocs", overrides='{"search":"grid"}')
TRIALS = plan(12)
DONE, FAILED, RUNNING = ids(TRIALS[:3])
TUNED = [
    PlannedTrial(
        trial_id=trial.trial_id,
        name=f"{trial.name} tuned",
        config=trial.config,
        position=Position(side="gss", stage="stage2", number=number + 1),
    )
    for number, trial in enumerate(TRIALS[4:])
]


def fill(store: Store) -> None:
    run_id = store.begin_run(RUN)
    store.register(KEY, TRIALS)
    store.register(OTHER, TUNED)
    attempts = store.claim(ids(TRIALS[:3]), owner="a driver", lease_s=600)
    store.record_epochs({RUNNING: [epoch(1)]}, attempts=attempts)
    fail(store, FAILED, cause="the worker died", run_id=run_id, attempt=1)
    for trial_id in (DONE, *ids(TUNED)):
        store.record(outcome(trial_id), run_id=run_id, spectrum=SPECTRUM)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the store of a killed command.

    The last transactions are only in the store's log. `old.db` is an earlier copy of the store.
    """
    folder = tmp_path_factory.mktemp("template")
    path = folder / "results.db"
    with open_store(str(path)) as store:
        fill(store)
    shutil.copy(path, folder / "old.db")
    with open_store(str(path)) as store:
        for number, trial_id in enumerate(ids(TUNED)):
            store.add_measurement(trial_id, f"later@{number}", {f"hits_{number}": 1 / 3})
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", folder / f"killed.db{suffix}")
    return folder


def read(path: Path) -> str:
    try:
        with open_store(str(path), create=False) as store:
            studies = sorted(store.studies(), key=lambda summary: summary.key.study)
            return repr([everything(store, summary.key) for summary in studies])
    except UserError as error:
        return str(error)


@pytest.fixture(scope="module")
def right(template: Path) -> list[str]:
    answers = []
    path = template / "right.db"
    log = (template / "killed.db-wal").read_bytes()
    for end in range(32, len(log) + 1, PAGE + 24):
        shutil.copy(template / "killed.db", path)
        Path(f"{path}-wal").write_bytes(log[:end])
        answers.append(read(path))
    assert len({*answers}) == 1 + len(TUNED) and not any("rebuild" in answer for answer in answers)
    return answers


def flip(file: Path, draw: random.Random) -> None:
    content = bytearray(file.read_bytes())
    at, size = draw.randrange(len(content)), draw.choice([0, 1, 16, PAGE])
    if size == 0:
        content[at] ^= 1 << draw.randrange(8)
    else:
        start = at - at % size
        part = content[start : start + size]
        content[start : start + size] = (
            bytes(len(part)) if size == PAGE else draw.randbytes(len(part))
        )
    file.write_bytes(content)


def a_page(path: Path, draw: random.Random) -> None:
    flip(path, draw)


def the_log(path: Path, draw: random.Random) -> None:
    flip(Path(f"{path}-wal"), draw)


def truncated(path: Path, draw: random.Random) -> None:
    file = draw.choice([path, Path(f"{path}-wal")])
    with file.open("r+b") as content:
        content.truncate(draw.randrange(file.stat().st_size))


def without_its_log(path: Path, _: random.Random) -> None:
    Path(f"{path}-wal").unlink()


def an_old_copy(path: Path, draw: random.Random) -> None:
    shutil.copy(path.with_name("old.db"), path)
    if draw.randrange(2):
        Path(f"{path}-wal").unlink()


@pytest.mark.chaos(20, 2000)
@pytest.mark.parametrize("change", [a_page, the_log, truncated, without_its_log, an_old_copy])
def test_numbers_are_right_or_refused(
    template: Path,
    right: list[str],
    tmp_path: Path,
    rounds: int,
    change: Callable[[Path, random.Random], None],
) -> None:
    path = tmp_path / "killed.db"
    for number in range(rounds if change is a_page else max(2, rounds // 10)):
        seed = random.randrange(2**32)
        print(f"seed {seed} of round {number}")
        for file in template.glob("*.db*"):
            shutil.copy(file, tmp_path / file.name)
        Path(f"{path}-shm").unlink(missing_ok=True)
        change(path, random.Random(seed))
        for _ in range(2):
            answer = read(path)
            assert answer in right or ("store rebuild" in answer and "\n" not in answer), answer
            with suppress(UserError), open_store(str(path)) as store:  # and a run can continue
                store.register(KEY, TRIALS)
                assert store.claim([DONE], owner="b", lease_s=60) == {}


def run(path: Path, *command: str) -> tuple[int, str]:
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        status = main([*command, "--store", str(path), "--storage", str(path.parent)])
    return status, errors.getvalue()


@pytest.mark.parametrize(
    "command",
    [
        ("results", "gss_grid"),
        ("report", "all"),
        ("store", "check"),
        ("gss_grid", "--scale", "smoke"),
    ],
)
@pytest.mark.parametrize("at", [0, 4096], ids=["no database", "a damaged page"])
def test_every_command_names_store_rebuild(
    template: Path, tmp_path: Path, command: tuple[str, ...], at: int
) -> None:
    path = Path(shutil.copy(template / "old.db", tmp_path / "results.db"))
    content = bytearray(path.read_bytes())
    content[at : at + 300] = b"\xff" * 300
    path.write_bytes(content)
    status, output = run(path, *command)
    last_line = output.splitlines()[-1]
    assert status == 2 and "Traceback" not in output
    assert last_line.startswith("error: ") and "store rebuild" in last_line


READERS: dict[str, Callable[[Store], object]] = {
    "results": lambda store: store.results(KEY),
    "trials": lambda store: store.trials(KEY),
    "epochs": lambda store: store.epochs_by_trial(KEY),
    "spectra": lambda store: store.spectra(KEY),
}
CHANGES = {
    "UPDATE result SET metrics = replace(metrics, '402', '403')": "results",
    "UPDATE result SET metrics = '{' WHERE measurement = 'spectrum'": "results",
    "UPDATE epoch SET metrics = replace(metrics, '5.25', '5.26') WHERE epoch = 2": "epochs",
    "UPDATE spectrum SET singular_values = substr(singular_values, 2)": "spectra",
    f"UPDATE trial SET outcome = replace(outcome, '2.13', '2.14') WHERE id = '{DONE}'": (
        "trials results"
    ),
    f"UPDATE trial SET config = replace(config, '-1.5', '-1.0') WHERE id = '{RUNNING}'": (
        "trials results"
    ),
}


@pytest.mark.parametrize("statement", CHANGES)
def test_changed_value_is_refused(store_url: str, statement: str) -> None:
    with open_store(store_url) as store:
        fill(store)
    execute(store_url, statement)
    with open_store(store_url, create=False) as store:
        for name, reader in READERS.items():
            refuses = name in CHANGES[statement].split()
            with pytest.raises(UserError, match="rebuild") if refuses else nullcontext():
                reader(store)


HOSTILE = [{"test_perplexity": "low"}, {"seed": 1}, {"x": 10**40}, {"x": {"y": 1}}]


@pytest.mark.parametrize("metrics", HOSTILE)
def test_foreign_metrics_are_refused(store_url: str, metrics: dict[str, object]) -> None:
    with open_store(store_url) as store:
        fill(store)
    forge(store_url, "result", condition=f"trial_id = '{DONE}'", metrics=metrics)
    with open_store(store_url) as store, pytest.raises(UserError, match="rebuild"):
        store.results(KEY)
