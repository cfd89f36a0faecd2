"""A trial measured later on its kept weights: the same bits, nothing trained, nothing taken twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from orchestrator.plan.study_plan import make_plan, scale_named
from search_spaces.catalog import load_study
from trainables.config import LmsPlifFrozenConfig, MosConfig, SoftmaxConfig, TextFile, TrialConfig
from trainables.config.contexts import ContextsFile
from trainables.corpora.benchmarks import Benchmark, BenchmarkFolder
from trainables.errors import UserError
from trainables.runtime import Runtime
from trainables.training.loop import Trainer
from trainables.trial.kept_weights import measure_kept
from trainables.trial.trial_run import run_trial
from trainables.trial_folder.checkpoint import load_tensors, save_tensors
from trainables.trial_folder.folder import TrialFolder

CONTEXTS = ContextsFile(name="mine.json", text='[{"last_token_index": 300}, {"last_token_index": 2500}]')
PAIRS = TextFile(name="B.txt", text="the a 3\nis are 9\nif or 1\nin of 2\n")
BENCHMARKS = BenchmarkFolder(name="mine", benchmarks=(Benchmark(name="B", file=PAIRS),))
RUNTIME = Runtime(contexts=CONTEXTS, benchmarks=BENCHMARKS)
NAMES = ("perplexity@1", "spectrum@1", "top_k@1", CONTEXTS.measurement, BENCHMARKS.measurement)


def smoke_trial() -> TrialConfig:
    config = make_plan(load_study("gss_grid"), scale_named("smoke"), "pydocs").trials[0].config
    assert isinstance(config, TrialConfig)
    return config


@pytest.mark.parametrize(
    "layer",
    [None, SoftmaxConfig(), MosConfig(mixtures=3), LmsPlifFrozenConfig(knots=1000)],
    ids=lambda layer: layer.name if layer else "gss",
)
def test_a_later_measurement_is_that_of_the_trials_end_bit_for_bit(
    tmp_path: Path, layer: SoftmaxConfig | MosConfig | LmsPlifFrozenConfig | None
) -> None:
    config = smoke_trial() if layer is None else smoke_trial().model_copy(update={"output_layer": layer})
    at_once = run_trial(config, directory=tmp_path / "at once", runtime=RUNTIME, measurements=NAMES)
    bare = run_trial(config, directory=tmp_path / "later", runtime=RUNTIME, measurements=())
    assert set(bare.measurements) == {"training@1"}
    metrics, singular_values = measure_kept(config, directory=tmp_path / "later", runtime=RUNTIME, names=NAMES)
    assert list(metrics) == list(NAMES)
    assert all(len(measured) >= 1 for measured in metrics.values())
    assert metrics == {name: at_once.measurements[name] for name in NAMES}
    assert singular_values is not None
    assert singular_values.tobytes() == np.load(tmp_path / "at once" / "spectrum.npy").tobytes()


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a done trial without measurements."""
    folder = tmp_path_factory.mktemp("done")
    run_trial(smoke_trial(), directory=folder, runtime=Runtime(), measurements=())
    return folder


@pytest.fixture
def folder(done: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(done, tmp_path / "trial"))


def test_each_measurement_is_durable_and_taken_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = smoke_trial()
    result = (folder / "result.json").read_bytes()
    found = measure_kept(config, directory=folder, runtime=Runtime(), names=("top_k@1",))
    for name in ("spectrum@1", "top_k@1"):
        measure_kept(config, directory=folder, runtime=Runtime(), names=(name,))
    later = TrialFolder(folder, config.trial_id).measurement("top_k@1")
    assert later == (found[0]["top_k@1"], None)
    assert (folder / "measurement-top_k@1.json").is_file()
    assert (folder / "result.json").read_bytes() == result

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("measured twice")

    monkeypatch.setattr("trainables.trial.kept_weights._measure", refuse)
    again = measure_kept(config, directory=folder, runtime=Runtime(), names=("top_k@1", "spectrum@1"))
    assert list(again[0]) == ["top_k@1", "spectrum@1"]
    assert again[0]["top_k@1"] == found[0]["top_k@1"]
    assert again[1] is not None


def test_what_was_measured_before_a_failure_is_kept(folder: Path) -> None:
    with pytest.raises(UserError, match="word-similarity"):
        measure_kept(
            smoke_trial(),
            directory=folder,
            runtime=Runtime(data_dir=folder),
            names=("perplexity@1", "word_similarity@1", "top_k@1"),
        )
    assert sorted(path.name for path in folder.glob("measurement-*")) == ["measurement-perplexity@1.json"]


@pytest.mark.parametrize("damage", ["", "{", '{"trial_id": "another"}'])
def test_a_damaged_file_is_measured_again(folder: Path, damage: str) -> None:
    config = smoke_trial()
    whole = measure_kept(config, directory=folder, runtime=Runtime(), names=("spectrum@1",))
    for path in (folder / "measurement-spectrum@1.json", folder / "measurement-spectrum@1.npy"):
        content = path.read_bytes()
        path.write_text(damage)
        assert TrialFolder(folder, config.trial_id).measurement("spectrum@1") is None
        again = measure_kept(config, directory=folder, runtime=Runtime(), names=("spectrum@1",))
        assert again[0] == whole[0]
        assert path.read_bytes() == content
    assert TrialFolder(folder, "another trial").measurement("spectrum@1") is None


def test_without_the_kept_weights_the_cause_names_the_file(folder: Path, tmp_path: Path) -> None:
    config, runtime = smoke_trial(), Runtime()
    for missing in (tmp_path / "nowhere", folder):
        (missing / "kept.safetensors").unlink(missing_ok=True)
        with pytest.raises(UserError, match=r"kept\.safetensors is missing: put the trial's folder back"):
            measure_kept(config, directory=missing, runtime=runtime, names=("top_k@1",))
    assert not (tmp_path / "nowhere").exists()


def test_damaged_weights_and_those_of_another_trial_are_refused(folder: Path) -> None:
    config, path = smoke_trial(), folder / "kept.safetensors"
    tensors, _ = load_tensors(path)
    save_tensors(path, tensors, {"trial_id": "another"})
    with pytest.raises(UserError, match="weights of another trial, another"):
        measure_kept(config, directory=folder, runtime=Runtime(), names=("top_k@1",))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UserError, match="is not a checkpoint"):
        measure_kept(config, directory=folder, runtime=Runtime(), names=("top_k@1",))


def test_a_trial_that_is_trained_anew_forgets_measurements_of_earlier_weights(folder: Path) -> None:
    config = smoke_trial()
    TrialFolder(folder, config.trial_id).write_measurement("top_k@1", ({"top_k even 1": "old"}, np.ones(3)))
    (folder / "result.json").unlink()
    run_trial(config, directory=folder, runtime=Runtime(), measurements=())
    assert not list(folder.glob("measurement-*"))
    metrics, _ = measure_kept(config, directory=folder, runtime=Runtime(), names=("top_k@1",))
    assert json.loads(str(metrics["top_k@1"]["top_k even 1"]))["top"]


def test_nothing_is_trained(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trainer, "step", None)
    before = (folder / "kept.safetensors").read_bytes()
    measure_kept(smoke_trial(), directory=folder, runtime=Runtime(), names=("perplexity@1",))
    assert (folder / "kept.safetensors").read_bytes() == before
