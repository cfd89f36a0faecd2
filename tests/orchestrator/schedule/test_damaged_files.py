"""Whatever happens to any file of a trial, the next run ends in the same numbers, or says in a
sentence why not."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from orchestrator.schedule.recording import Recorder
from orchestrator.storage.storage import FolderStorage
from orchestrator.store.opening import open_store
from orchestrator.store.records import PlannedTrial, StudyKey
from tests.support import tiny_trial
from tests.support.command import TIMES
from tests.support.store_rows import RUN
from trainables.config import TrialConfig
from trainables.errors import UserError
from trainables.runtime import Runtime
from trainables.trial import kept_weights, trial_run
from trainables.trial_folder.folder import trial_directory
from trainables.trial_folder.outcome import EpochMetrics

KEY = StudyKey(study="damaged", scale="smoke", corpus="tiny")
CONFIG = tiny_trial.trial(epochs=2)
OTHER = CONFIG.model_copy(update={"seed": 8})
AT_ONCE = ("perplexity@1", "spectrum@1")
NAMES = (*AT_ONCE, "top_k@1")
FILES = {
    "checkpoint-*": "under way",
    "checkpoint-*, the last": "under way",
    "result.json": "whole",
    "spectrum.npy": "whole",
    "kept.safetensors": "whole",
    "measurement-spectrum*.json": "measured later",
    "measurement-spectrum*.npy": "measured later",
}
"""Every kind of durable file, and how far the trial is that has it."""
BLOCK = 512


class Numbers(NamedTuple):
    metrics: dict[str, object]
    """Without those that a repetition changes."""
    spectrum: bytes | None


class _StopError(Exception):
    pass


def stop_in_second_epoch(epoch: EpochMetrics) -> None:
    if epoch.epoch == 2:
        raise _StopError


def make(config: TrialConfig, storage: Path, state: str) -> None:
    """A trial's folder as a run leaves it that is killed then, or before it has recorded
    anything."""
    directory = trial_directory(storage, config.trial_id)
    if state == "under way":
        with pytest.raises(_StopError):
            trial_run.run_trial(
                config,
                directory=directory,
                runtime=Runtime(checkpoint_every_s=0.0),
                on_epoch=stop_in_second_epoch,
            )
        return
    at_once = AT_ONCE if state == "whole" else AT_ONCE[:1]
    trial_run.run_trial(config, directory=directory, runtime=Runtime(), measurements=at_once)
    if state == "measured later":
        kept_weights.measure_kept(config, directory=directory, runtime=Runtime(), names=AT_ONCE[1:])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """For each state a storage with the folders of two trials, and a store that plans the first of
    them."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        for module in (trial_run, kept_weights):
            patch.setattr(module, "load", lambda *_, **__: tiny_trial.corpus(600))
        for state in {*FILES.values()}:
            for config in (CONFIG, OTHER):
                make(config, folder / state, state)
        with open_store(f"sqlite:///{folder}/results.db") as store:
            store.register(KEY, [PlannedTrial.of(CONFIG, "the trial")])
            store.begin_run(RUN)
        yield folder


@pytest.fixture(scope="module")
def truth(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Numbers:
    storage = tmp_path_factory.mktemp("truth")
    numbers, sentences = next_run(made, storage)
    assert (
        sentences == []
        and numbers.spectrum
        and "press_rank" in numbers.metrics
        and "parameters" in numbers.metrics
    )
    return numbers


def next_run(made: Path, storage: Path) -> tuple[Numbers, list[str]]:
    """What a sweep does with the trial in its driver and its worker, but Ray; and what the user is
    told."""
    shutil.copy(made / "results.db", storage / "results.db")
    sentences: list[str] = []
    directory = trial_directory(storage, CONFIG.trial_id)
    with open_store(f"sqlite:///{storage}/results.db") as store:
        recorder = Recorder(store, FolderStorage(storage), run_id=1)
        recorder.recover([PlannedTrial.of(CONFIG, "the trial")], note=sentences.append)
        if store.states([CONFIG.trial_id]) != {CONFIG.trial_id: "done"}:
            outcome = trial_run.run_trial(
                CONFIG,
                directory=directory,
                runtime=Runtime(),
                measurements=AT_ONCE,
                note=sentences.append,
            )
            recorder.outcome(outcome)
            sentences += filter(None, [outcome.cause])
        for _ in range(2):
            recorder.measurements(lacking := store.lacking(KEY, NAMES))
            if lacking := store.lacking(KEY, NAMES):
                try:
                    names = lacking[CONFIG.trial_id]
                    kept_weights.measure_kept(
                        CONFIG,
                        directory=directory,
                        runtime=Runtime(),
                        names=names,
                        note=sentences.append,
                    )
                except UserError as error:
                    sentences.append(str(error))
        [row] = store.results(KEY)
        spectrum = store.spectra(KEY).get(CONFIG.trial_id)
    metrics = {name: value for name, value in row["metrics"].items() if name not in TIMES}
    return Numbers(metrics, None if spectrum is None else spectrum.tobytes()), sentences


def truncate(path: Path, draws: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: draws.randrange(path.stat().st_size)])


def flip_a_bit(path: Path, draws: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[draws.randrange(len(content))] ^= 1 << draws.randrange(8)
    path.write_bytes(content)


def flip_a_bit_of_every_block(path: Path, draws: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for start in range(0, len(content), BLOCK):
        content[draws.randrange(start, min(start + BLOCK, len(content)))] ^= 1 << draws.randrange(8)
    path.write_bytes(content)


def swap(path: Path, _: random.Random) -> None:
    other = trial_directory(path.parents[3], OTHER.trial_id)
    shutil.copy(max(other.glob(f"{path.name.partition('0')[0]}*")), path)


def delete(path: Path, _: random.Random) -> None:
    path.unlink()


DAMAGES: tuple[Callable[[Path, random.Random], None], ...] = (
    flip_a_bit,
    truncate,
    flip_a_bit_of_every_block,
    swap,
    delete,
)


@pytest.mark.chaos(len(DAMAGES), 100 * len(DAMAGES))
@pytest.mark.parametrize("pattern", FILES)
def test_a_damaged_file_changes_no_number(
    made: Path, truth: Numbers, tmp_path: Path, pattern: str, rounds: int
) -> None:
    for number in range(rounds):
        damage = DAMAGES[number % len(DAMAGES)]
        storage = Path(shutil.copytree(made / FILES[pattern], tmp_path / str(number)))
        paths = sorted(trial_directory(storage, CONFIG.trial_id).glob(pattern.partition(",")[0]))
        assert paths
        for path in paths[-1:] if "last" in pattern else paths:
            damage(path, random.Random(f"{number} {path.name}"))
        numbers, sentences = next_run(made, storage)
        what = (number, damage.__name__, sentences)
        assert all("\n" not in sentence and "Error" not in sentence for sentence in sentences), what
        assert numbers.metrics.items() <= truth.metrics.items(), what
        assert numbers.spectrum == truth.spectrum, what
        assert sentences or (damage is delete and numbers == truth), what
        shutil.rmtree(storage)
