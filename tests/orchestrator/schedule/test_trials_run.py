"""A sweep over real Ray processes: what goes wrong in one trial stays there, and is named."""

from __future__ import annotations

import os
import re
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cluster.run_options import RunOptions
from orchestrator.schedule.study_work import RunSummary, StudyWork
from orchestrator.schedule.trials_run import run_trials
from orchestrator.storage.storage import FolderStorage
from orchestrator.store.opening import open_store
from orchestrator.store.records import PlannedTrial, RunRecord, StudyKey, TrialRow
from orchestrator.store.store import Store
from orchestrator.watch.listener import Listener
from orchestrator.worker.pack_run import TrialFunctions
from tests.support import one_ray
from tests.support.scripted_trials import (
    BAD_INPUT,
    DIVERGES,
    EXITS,
    KILLED_ONCE,
    RAISES,
    SOUND,
    log_lines,
    planned,
    run_scripted,
)
from tests.support.small_disk import change, small_disk
from trainables.errors import UserError
from trainables.trial_folder.outcome import EpochMetrics, TrialOutcome

KEY = StudyKey(study="mixed", scale="smoke", corpus="none")
SEEDS = [SOUND, RAISES, SOUND + 1, DIVERGES, EXITS, SOUND + 2, KILLED_ONCE, BAD_INPUT, SOUND + 3]


class Heard(Listener):
    """A listener that remembers."""

    def __init__(self) -> None:
        self.starts: list[str] = []
        self.started_ids: set[str] = set()
        self.epochs: list[tuple[str, int]] = []
        self.outcomes: dict[str, TrialOutcome] = {}
        self.notes: list[str] = []

    def started(self, trial_id: str, name: str) -> None:
        self.starts.append(name)
        self.started_ids.add(trial_id)

    def epoch(self, trial_id: str, metrics: EpochMetrics) -> None:
        self.epochs.append((trial_id, metrics.epoch))

    def finished(self, trial_id: str, outcome: TrialOutcome) -> None:
        assert trial_id not in self.outcomes
        self.outcomes[trial_id] = outcome

    def note(self, text: str) -> None:
        self.notes.append(text)


WORK = StudyWork(seconds_per_trial=0.3)


def options(storage: Path, **changes: Any) -> RunOptions:
    return RunOptions(storage=FolderStorage(storage), **changes)


@pytest.fixture(scope="module")
def notes() -> list[str]:
    """What Ray, as the product starts it, told the user."""
    one_ray.start_ray()
    return one_ray.notes


def opened(folder: Path, plan: list[PlannedTrial]) -> tuple[Store, int]:
    store = open_store(f"sqlite:///{folder}/results.db")
    store.register(KEY, plan)
    run = RunRecord(code_version="-", packages={}, host="-", device="cpu", corpus_sha256="0" * 64)
    return store, store.begin_run(run)


def run(folder: Path, plan: list[PlannedTrial], store: Store, run_id: int, **changes: Any) -> RunSummary:
    return run_trials(
        plan,
        store=store,
        run_id=run_id,
        options=options(folder, **changes),
        work=WORK,
        listener=Listener(),
        functions=TrialFunctions(run_trial=run_scripted),
    )


class Swept:
    """One sweep over trials that go wrong in every way, and what it left."""

    def __init__(self, folder: Path) -> None:
        plan = planned(SEEDS)
        self.folder, self.heard = folder, Heard()
        self.store, run_id = opened(folder, plan)
        self.summary = run_trials(
            plan,
            store=self.store,
            run_id=run_id,
            options=options(folder),
            work=WORK,
            listener=self.heard,
            functions=TrialFunctions(run_trial=run_scripted),
        )
        self.rows: dict[int, TrialRow] = {row.config["seed"]: row for row in self.store.trials(KEY)}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Swept]:
    one_ray.start_ray()
    done = Swept(tmp_path_factory.mktemp("swept"))
    yield done
    done.store.close()


def test_sound_trials_finish_whatever_their_mates_do(swept: Swept) -> None:
    sound = [SOUND, SOUND + 1, SOUND + 2, SOUND + 3, KILLED_ONCE]
    assert {seed: swept.rows[seed].state for seed in sound} == dict.fromkeys(sound, "done")
    assert Counter(row.state for row in swept.rows.values()) == {"done": 5, "diverged": 1, "failed": 3}
    assert not swept.summary.interrupted


def test_each_trouble_is_named_with_its_cause(swept: Swept) -> None:
    assert swept.rows[RAISES].cause == "RuntimeError: the weights are on strike"
    assert swept.rows[BAD_INPUT].cause == "The folder has no train.txt: put one there."
    assert (swept.rows[DIVERGES].state, swept.rows[DIVERGES].cause) == ("diverged", "The loss is not finite.")
    assert "process died" in str(swept.rows[EXITS].cause)
    assert {swept.rows[seed].trial_id for seed in (RAISES, DIVERGES, EXITS, BAD_INPUT)} == {
        trial_id for trial_id, outcome in swept.heard.outcomes.items() if outcome.state != "done"
    }


def test_the_traceback_of_a_trial_is_in_its_folder(swept: Swept) -> None:
    trial_id = swept.rows[RAISES].trial_id
    text = (swept.folder / "trials" / trial_id[:2] / trial_id / "error.log").read_text()
    assert "Traceback" in text
    assert "and this line is for the log" in text


def test_a_trial_whose_process_died_goes_on_from_its_checkpoint_once(swept: Swept) -> None:
    lines = log_lines(swept.folder)
    assert [line for line in lines if line.startswith(f"start {KILLED_ONCE} ")] == [
        f"start {KILLED_ONCE} 0",
        f"start {KILLED_ONCE} 2",
    ]
    assert sum(line.startswith(f"start {EXITS} ") for line in lines) == 2
    assert swept.rows[EXITS].attempt == 2


def test_no_trial_runs_twice_because_of_a_mate(swept: Swept) -> None:
    lines = log_lines(swept.folder)
    for seed in (SOUND, SOUND + 1, SOUND + 2, SOUND + 3, RAISES, DIVERGES, BAD_INPUT):
        assert sum(line.startswith(f"start {seed} ") for line in lines) == 1
        assert swept.rows[seed].attempt == 1


def test_the_listener_hears_of_every_trial_and_the_store_holds_its_epochs(swept: Swept) -> None:
    assert set(swept.heard.starts) == {f"seed={seed}" for seed in SEEDS}
    assert swept.heard.started_ids == set(swept.heard.outcomes)
    assert {trial_id: outcome.state for trial_id, outcome in swept.heard.outcomes.items()} == {
        row.trial_id: row.state for row in swept.rows.values()
    }
    assert [epoch.epoch for epoch in swept.store.epochs(swept.rows[SOUND].trial_id)] == [1, 2, 3, 4]


@pytest.mark.usefixtures("one_ray")
def test_everything_that_ray_listens_on_is_loopback() -> None:
    listening = {address for pid in descendants(os.getpid()) for address in listening_addresses(pid)}
    assert listening
    assert {address for address in listening if not is_loopback(address)} == set()


def test_the_dashboard_asks_for_the_token_that_the_note_speaks_of(notes: list[str]) -> None:
    note = next(text for text in notes if "dashboard" in text)
    assert "ray get-auth-token" in note
    address = next(word for word in note.split() if word.startswith("http://127.0.0.1:"))
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{address}/api/cluster_status", timeout=20)


@pytest.mark.usefixtures("one_ray")
def test_a_store_that_cannot_be_written_ends_the_sweep_with_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned([SOUND, SOUND + 1])
    store, run_id = opened(tmp_path, plan)

    def full_disk(*_: object, **__: object) -> bool:
        raise UserError("The disk is full.")

    monkeypatch.setattr(store, "record", full_disk)
    with pytest.raises(UserError, match="The disk is full"):
        run(tmp_path, plan, store, run_id)
    assert set(store.states([trial.trial_id for trial in plan]).values()) == {"planned"}
    store.close()


@pytest.mark.usefixtures("one_ray")
def test_a_full_disk_stops_the_sweep_and_with_room_the_same_command_finishes_it(tmp_path: Path) -> None:
    plan = planned(list(range(SOUND, SOUND + 8)))
    ids = [trial.trial_id for trial in plan]
    store, run_id = opened(tmp_path, plan)
    with store, small_disk(tmp_path / "disk", kib=40) as disk:
        message = f"The disk of {disk} is full: free space there and type the same command again"
        with pytest.raises(UserError, match=re.escape(message)):
            run(disk, plan, store, run_id)
        states = Counter(store.states(ids).values())
        assert states["done"] >= 1
        assert states == {"done": states["done"], "planned": 8 - states["done"]}
        change(disk, "size=1m")
        run(disk, [trial for trial in plan if store.states(ids)[trial.trial_id] != "done"], store, run_id)
        assert Counter(store.states(ids).values()) == {"done": 8}
        ends = [line for line in log_lines(disk) if line.startswith("end")]
        assert sorted(ends) == sorted(f"end {SOUND + number}" for number in range(8))


@pytest.mark.usefixtures("one_ray")
def test_more_gpus_than_a_model_can_use_is_said_before_any_trial_starts(tmp_path: Path) -> None:
    plan = planned([SOUND])
    store, run_id = opened(tmp_path, plan)
    with pytest.raises(UserError, match="at most 1, not 64"):
        run(tmp_path, plan, store, run_id, gpus_per_trial=64)
    assert log_lines(tmp_path) == []
    store.close()


def descendants(pid: int) -> list[int]:
    """All processes below `pid`, from /proc."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(stat.parent.name)] = int(fields[1])
    found = [child for child, parent in parents.items() if parent == pid]
    return found + [below for child in found for below in descendants(child)]


def listening_addresses(pid: int) -> set[str]:
    """Hexadecimal addresses on which a process listens, as the kernel's tables write them."""
    try:
        links = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
    except (FileNotFoundError, ProcessLookupError):
        return set()
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in links:
                found.add(fields[1].rpartition(":")[0])
    return found


def is_loopback(address: str) -> bool:
    """127.x.x.x, ::1 or ::ffff:127.x.x.x, in the kernel's byte order (words of a little-endian machine)."""
    if len(address) == 8:
        return address.endswith("7F")
    return address == "00000000000000000000000001000000" or (
        address.startswith("0000000000000000FFFF0000") and address.endswith("7F")
    )
