from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.orchestrator.schedule import small_sweep
from tests.orchestrator.schedule.small_sweep import MEASUREMENTS, PLAN
from tests.support import tiny_trial
from trainables.config import TrialConfig
from trainables.runtime import Runtime
from trainables.trial import kept_weights, trial_run
from trainables.trial_folder.folder import trial_directory
from trainables.trial_folder.outcome import Epoch

TRIAL, OTHER = (trial.trial_id for trial in PLAN)
NAMES = (*MEASUREMENTS, "top_k@1")
FILES = {
    "checkpoint-*": "under way",
    "checkpoint-*, the last": "under way",
    "result.json": "whole",
    "spectrum.npy": "whole",
    "kept.safetensors": "whole",
    "measurement-spectrum*.json": "measured later",
    "measurement-spectrum*.npy": "measured later",
}
BLOCK = 512


class _StopError(Exception):
    pass


def stop_in_second_epoch(epoch: Epoch) -> None:
    if epoch.epoch == 2:
        raise _StopError


def make(config: TrialConfig, storage: Path, state: str) -> None:
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
    at_once = MEASUREMENTS if state == "whole" else MEASUREMENTS[:1]
    trial_run.run_trial(config, directory=directory, runtime=Runtime(), measurements=at_once)
    if state == "measured later":
        kept_weights.measure_kept(
            config, directory=directory, runtime=Runtime(), names=MEASUREMENTS[1:]
        )


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        for module in (trial_run, kept_weights):
            patch.setattr(module, "load", lambda *_, **__: tiny_trial.corpus(600))
        for state in {*FILES.values()}:
            for trial in PLAN:
                make(TrialConfig.model_validate(trial.config), folder / state, state)
        yield folder


@pytest.fixture(scope="module")
def truth(templates: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:  # noqa: ARG001
    row, sentences = next_run(tmp_path_factory.mktemp("truth"))
    assert sentences == [] and row["spectrum"]
    assert {"press_rank", "parameters"} <= row["metrics"].keys()
    return row


def next_run(storage: Path) -> tuple[dict[str, Any], list[str]]:
    sentences = [text for _ in range(2) for text in small_sweep.sweep(storage, PLAN[:1], NAMES)]
    return small_sweep.table(storage)[0], sentences


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
    other = trial_directory(path.parents[3], OTHER)
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
def test_damaged_file_changes_no_number(
    templates: Path, truth: dict[str, Any], tmp_path: Path, pattern: str, rounds: int
) -> None:
    for number in range(rounds):
        damage = DAMAGES[number % len(DAMAGES)]
        storage = Path(shutil.copytree(templates / FILES[pattern], tmp_path / str(number)))
        paths = sorted(trial_directory(storage, TRIAL).glob(pattern.partition(",")[0]))
        assert paths
        for path in paths[-1:] if "last" in pattern else paths:
            damage(path, random.Random(f"{number} {path.name}"))
        row, sentences = next_run(storage)
        case = (number, damage.__name__, sentences)
        assert all("\n" not in sentence and "Error" not in sentence for sentence in sentences), case
        assert row["metrics"].items() <= truth["metrics"].items(), case
        assert row["spectrum"] == truth["spectrum"], case
        assert sentences or (damage is delete and row == truth), case
        shutil.rmtree(storage)
