"""One trial from config to result, without Ray; and the command that runs one."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pytest

from orchestrator.plan.study_plan import PlanRequest, make_plan, scale_named
from search_spaces.catalog import load_study
from trainables.__main__ import main
from trainables.config import GssConfig, OutputLayerConfig, SoftmaxConfig, TrialConfig
from trainables.runtime import Runtime
from trainables.trial.trial_run import run_trial
from trainables.trial_folder import EpochMetrics, TrialOutcome
from trainables.trial_folder.checkpoint import load_tensors

ROOT = Path(__file__).parents[3]
CLOCKS = ("seconds", "seconds_per_epoch", "tokens_per_second", "wall_seconds", "peak_memory_mib")


def smoke_trial(scale: str = "smoke", **overrides: int) -> TrialConfig:
    request = PlanRequest(overrides={key.replace("__", "."): value for key, value in overrides.items()})
    config = make_plan(load_study("gss_grid"), scale_named(scale), "pydocs", request).trials[0].config
    assert isinstance(config, TrialConfig)
    return config


def without_clocks(outcome: dict[str, object]) -> dict[str, object]:
    measurements: dict[str, dict[str, object]] = outcome["measurements"]  # type: ignore[assignment]
    for metrics in measurements.values():
        for name in CLOCKS:
            metrics.pop(name, None)
    epochs: list[dict[str, object]] = outcome["epochs"]  # type: ignore[assignment]
    for epoch in epochs:
        del epoch["seconds"]
    return outcome


def test_a_trial_leaves_its_result_spectrum_and_weights_and_no_checkpoints(tmp_path: Path) -> None:
    outcome = run_trial(smoke_trial(), directory=tmp_path, runtime=Runtime(checkpoint_every_s=0.0))
    assert outcome.state == "done"
    assert {path.name for path in tmp_path.iterdir()} == {"lock", "result.json", "spectrum.npy", "kept.safetensors"}
    assert json.loads((tmp_path / "result.json").read_text())["trial_id"] == smoke_trial().trial_id
    metrics = {name: value for measured in outcome.measurements.values() for name, value in measured.items()}
    values = np.load(tmp_path / "spectrum.npy", allow_pickle=False)
    assert (values > metrics["press_tolerance"]).sum() == metrics["press_rank"]
    weights, _ = load_tensors(tmp_path / "kept.safetensors")
    assert sum(tensor.numel() for tensor in weights.values()) == metrics["parameters"]


def test_two_processes_never_train_in_one_folder_at_the_same_time(tmp_path: Path) -> None:
    """The second comes while the first trains: it waits for the first one's lock and finds its result."""
    file, folder = tmp_path / "config.json", tmp_path / "trial"
    file.write_text(smoke_trial().canonical_json())
    command = [sys.executable, "-m", "trainables", str(file), "--directory", str(folder)]
    processes: list[subprocess.Popen[str]] = []

    def start_second(epoch: EpochMetrics) -> None:
        if epoch.epoch == 1:
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            processes.append(process)
            while process.poll() is None and not has_open(process, folder / "lock"):
                time.sleep(0.01)

    outcome = run_trial(smoke_trial(), directory=folder, runtime=Runtime(), on_epoch=start_second)
    output, errors = processes[0].communicate()
    assert (processes[0].returncode, errors) == (0, "")
    assert TrialOutcome.model_validate_json(output) == outcome


def has_open(process: subprocess.Popen[str], file: Path) -> bool:
    return any(path.is_symlink() and path.resolve() == file for path in Path(f"/proc/{process.pid}/fd").iterdir())


def test_a_pruned_trial_taken_up_again_ends_with_the_bits_of_one_that_never_was(tmp_path: Path) -> None:
    """Stopped after the second of five epochs, with the averaging switch still to come."""
    config = smoke_trial(training__epochs=5, training__averaging__switch_epoch=3)
    straight = run_trial(config, directory=tmp_path / "straight", runtime=Runtime())
    folder = tmp_path / "stopped"
    second_loss = straight.epochs[1].valid_loss
    for _ in range(2):  # asked again by a search, it stops again, without a step
        pruned = run_trial(config, directory=folder, runtime=Runtime(), stop_above={1: 100.0, 2: second_loss - 1e-9})
        assert pruned.state == "pruned"
        assert f"stopped after epoch 2: its validation loss of {second_loss:.5f}" in str(pruned.cause)
        assert [epoch.valid_loss for epoch in pruned.epochs] == [epoch.valid_loss for epoch in straight.epochs[:2]]
        assert {path.name.partition("-")[0] for path in folder.iterdir()} == {"lock", "result.json", "checkpoint"}
    heard: list[int] = []
    whole = run_trial(config, directory=folder, runtime=Runtime(), on_epoch=lambda epoch: heard.append(epoch.epoch))
    assert heard == [3, 4, 5]
    assert without_clocks(whole.model_dump(mode="json")) == without_clocks(straight.model_dump(mode="json"))
    for name in ("kept.safetensors", "spectrum.npy"):
        assert (folder / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()
    assert {path.name for path in folder.iterdir()} == {"lock", "result.json", "spectrum.npy", "kept.safetensors"}


def test_a_loss_equal_to_the_threshold_passes(tmp_path: Path) -> None:
    first = run_trial(smoke_trial(), directory=tmp_path / "first", runtime=Runtime())
    above = {1: first.epochs[0].valid_loss}
    assert run_trial(smoke_trial(), directory=tmp_path / "again", runtime=Runtime(), stop_above=above).state == "done"


def test_a_rule_holds_also_for_an_epoch_that_ended_before_the_process_died(tmp_path: Path) -> None:
    """The checkpoint is of the epoch's end, and no result was written: as a kill between the two leaves it."""
    config = smoke_trial()
    assert run_trial(config, directory=tmp_path, runtime=Runtime(), stop_above={1: 0.5}).state == "pruned"
    (tmp_path / "result.json").unlink()
    heard: list[object] = []
    again = run_trial(config, directory=tmp_path, runtime=Runtime(), on_epoch=heard.append, stop_above={1: 0.5})
    assert (again.state, heard) == ("pruned", [])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [("{", "not a trial's config"), ('{"seed": -1}', "not a trial's config"), (None, "cannot read")],
)
def test_a_file_that_is_no_config_gets_one_sentence(
    tmp_path: Path, content: str | None, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.json"
    if content is not None:
        file.write_text(content)
    assert main([str(file)]) == 2
    answer = capsys.readouterr().err
    assert answer.startswith("error: ") and sentence in answer


@pytest.mark.parametrize(("layer", "ranks"), [(SoftmaxConfig(), {6}), (GssConfig(c=-2.0, k=1.25), range(7, 301))])
def test_a_softmax_model_reaches_its_rank_bound_and_a_cell_of_the_grid_goes_beyond(
    layer: OutputLayerConfig, ranks: Collection[int], tmp_path: Path
) -> None:
    """d + 2 = 6, of 300 words, after enough training: the rank of 2000 contexts is far from both at first."""
    config = smoke_trial(
        "quick",
        corpus__vocabulary_limit=300,
        model__embedding_width=4,
        model__context_width=4,
        model__hidden_width=24,
        training__epochs=4,
        training__epoch_tokens=30_000,
        evaluation__valid_tokens=2000,
        evaluation__test_tokens=2000,
    ).model_copy(update={"output_layer": layer})
    outcome = run_trial(config, directory=tmp_path, runtime=Runtime())
    assert outcome.measurements["spectrum@1"]["press_rank"] in ranks
    assert float(outcome.measurements["perplexity@1"]["test_perplexity"]) < 50
