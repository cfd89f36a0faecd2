"""A trial measured later on its kept weights: the same bits, nothing trained, nothing taken twice."""

from __future__ import annotations

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
from trainables.trial_folder.folder import Measured, TrialFolder

CONTEXTS = ContextsFile(name="mine.json", text='[{"last_token_index": 300}, {"last_token_index": 2500}]')
PAIRS = TextFile(name="B.txt", text="the a 3\nis are 9\nif or 1\nin of 2\n")
BENCHMARKS = BenchmarkFolder(name="mine", benchmarks=(Benchmark(name="B", file=PAIRS),))
RUNTIME = Runtime(contexts=CONTEXTS, benchmarks=BENCHMARKS)
Measurements = dict[str, Measured | None]
NAMES = ("perplexity@1", "spectrum@1", "top_k@1", CONTEXTS.measurement, BENCHMARKS.measurement)


def smoke_trial() -> TrialConfig:
    config = make_plan(load_study("gss_grid"), scale_named("smoke"), "pydocs").trials[0].config
    assert isinstance(config, TrialConfig)
    return config


def measured(folder: Path, *names: str, config: TrialConfig | None = None, runtime: Runtime = RUNTIME) -> Measurements:
    """What is in the trial's folder after it was measured."""
    config = config or smoke_trial()
    measure_kept(config, directory=folder, runtime=runtime, names=names)
    return {name: TrialFolder(folder, config.trial_id).measurement(name) for name in names}


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
    later = measured(tmp_path / "later", *NAMES, config=config)
    for name, measurement in later.items():
        assert measurement is not None and len(measurement[0]) >= 1
        assert measurement[0] == at_once.measurements[name]
    assert spectrum_of(later) == np.load(tmp_path / "at once" / "spectrum.npy").tobytes()


def spectrum_of(measurements: Measurements) -> bytes:
    measurement = measurements["spectrum@1"]
    assert measurement is not None and measurement[1] is not None
    return measurement[1].tobytes()


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


def test_a_measurement_is_durable_and_taken_once_and_nothing_is_trained(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trainer, "step", None)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    first = measured(folder, "top_k@1")
    spectrum_of(measured(folder, "spectrum@1"))
    assert before.items() <= {path.name: path.read_bytes() for path in folder.iterdir()}.items()
    monkeypatch.setattr("trainables.trial.kept_weights.load_tensors", None)  # so that another look at them fails
    assert measured(folder, "top_k@1", "spectrum@1")["top_k@1"] == first["top_k@1"]


def test_what_was_measured_before_a_failure_is_kept(folder: Path) -> None:
    with pytest.raises(UserError, match="word-similarity"):
        measured(folder, "perplexity@1", "word_similarity@1", "top_k@1", runtime=Runtime(data_dir=folder))
    assert sorted(path.name for path in folder.glob("measurement-*")) == ["measurement-perplexity@1.json"]


@pytest.mark.parametrize("damage", ["", "{", '{"trial_id": "another"}'])
def test_a_damaged_file_is_measured_again(folder: Path, damage: str) -> None:
    measured(folder, "spectrum@1")
    for path in (folder / "measurement-spectrum@1.json", folder / "measurement-spectrum@1.npy"):
        content = path.read_bytes()
        path.write_text(damage)
        assert TrialFolder(folder, smoke_trial().trial_id).measurement("spectrum@1") is None
        measured(folder, "spectrum@1")
        assert path.read_bytes() == content
    assert TrialFolder(folder, "another trial").measurement("spectrum@1") is None


def test_without_the_kept_weights_the_cause_names_the_file(folder: Path, tmp_path: Path) -> None:
    for missing in (tmp_path / "nowhere", folder):
        (missing / "kept.safetensors").unlink(missing_ok=True)
        with pytest.raises(UserError, match=r"kept\.safetensors is missing: put the trial's folder back"):
            measured(missing, "top_k@1")
    assert not (tmp_path / "nowhere").exists()


def test_damaged_weights_and_those_of_another_trial_are_refused(folder: Path) -> None:
    path = folder / "kept.safetensors"
    tensors, _ = load_tensors(path)
    save_tensors(path, tensors, {"trial_id": "another"})
    with pytest.raises(UserError, match="weights of another trial, another"):
        measured(folder, "top_k@1")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UserError, match="is not a checkpoint"):
        measured(folder, "top_k@1")


def test_a_trial_that_is_trained_anew_forgets_measurements_of_earlier_weights(folder: Path) -> None:
    config = smoke_trial()
    TrialFolder(folder, config.trial_id).write_measurement("top_k@1", Measured({"top_k even 1": "old"}, np.ones(3)))
    (folder / "result.json").unlink()
    run_trial(config, directory=folder, runtime=Runtime(), measurements=())
    assert not list(folder.glob("measurement-*"))
