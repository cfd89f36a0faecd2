from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from tests.support.smoke_trials import (
    FILES,
    names_in,
    smoke_transformer,
    smoke_trial,
    without_clocks,
)
from tests.support.tiny_trial import log_p_matrix
from trainables.__main__ import main
from trainables.config import (
    METRICS,
    ContextsFile,
    CustomConfig,
    LanguageTrialConfig,
    MosConfig,
    SoftmaxConfig,
    TextFile,
)
from trainables.corpora import Benchmark, BenchmarkFolder, load
from trainables.errors import UserError
from trainables.output_layers import LayerShape, PointwiseSoftmax
from trainables.runtime import Runtime
from trainables.training import Trainer
from trainables.trial import kept_model, kept_weights, measure_kept, run_trial
from trainables.trial_folder import (
    Checkpoints,
    Epoch,
    Measured,
    TrialFolder,
    TrialOutcome,
    load_tensors,
    save_tensors,
)

ROOT = Path(__file__).parents[3]

CONTEXTS = ContextsFile(
    name="mine.json", text='[{"last_token_index": 300}, {"last_token_index": 2500}]'
)
PAIRS = TextFile(name="B.txt", text="the a 3\nis are 9\nif or 1\nin of 2\n")
BENCHMARKS = BenchmarkFolder(name="mine", benchmarks=(Benchmark(name="B", file=PAIRS),))
RUNTIME = Runtime(contexts=CONTEXTS, benchmarks=BENCHMARKS)
Measurements = dict[str, Measured | None]
NAMES = [
    *("perplexity@1", "spectrum@1", "top_k@1", "kl_rank@1", "gradient_bottleneck@1"),
    *("spectrum_by_epoch@1", "bent_softmax@1", "centred_spectrum@1"),
    *(CONTEXTS.measurement, BENCHMARKS.measurement),
]


def test_trial_imports_no_compiler(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    trial = smoke_trial(**{"training.optimizer": "adam", "training.epochs": 1})
    config.write_text(trial.model_dump_json())
    program = (
        "import sys; from trainables.__main__ import main; assert main(sys.argv[1:]) == 0; "
        "assert not {'torch._dynamo', 'sympy', 'triton'} & set(sys.modules)"
    )
    command = [sys.executable, "-c", program, str(config), f"--directory={tmp_path}/trial"]
    subprocess.run(command, cwd=ROOT, timeout=300, check=True)


def test_files_of_a_done_trial(tmp_path: Path) -> None:
    outcome = run_trial(smoke_trial(), directory=tmp_path, runtime=Runtime(checkpoint_every_s=0.0))
    assert outcome.state == "done"
    assert names_in(tmp_path) == set(FILES)
    assert json.loads((tmp_path / "result.json").read_text())["trial_id"] == smoke_trial().trial_id
    metrics = outcome.metrics
    values = np.load(tmp_path / "spectrum.npy", allow_pickle=False)
    assert (values > metrics["press_tolerance"]).sum() == metrics["press_rank"]
    weights, _ = load_tensors(tmp_path / "kept.safetensors")
    assert sum(tensor.numel() for tensor in weights.values()) == metrics["parameters"]
    epochs: list[object] = []
    again = run_trial(smoke_trial(), directory=tmp_path, runtime=Runtime(), on_epoch=epochs.append)
    assert (again, epochs) == (outcome, []), "a done trial must not train again"


def test_two_processes_in_one_folder(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    processes: list[subprocess.Popen[str]] = []

    def start_second(epoch: Epoch) -> None:
        if epoch.epoch == 1:
            command = [sys.executable, "-m", "trainables", f"{folder}/config.json"]
            command.append(f"--directory={folder}")
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
            processes.append(process)
            while process.poll() is None and not has_open(process, folder / "lock"):
                time.sleep(0.01)

    outcome = run_trial(smoke_trial(), directory=folder, runtime=Runtime(), on_epoch=start_second)
    output, _ = processes[0].communicate()
    assert processes[0].returncode == 0
    assert TrialOutcome.model_validate_json(output) == outcome


def has_open(process: subprocess.Popen[str], file: Path) -> bool:
    return str(file) in (opened.path for opened in psutil.Process(process.pid).open_files())


class Projected(PointwiseSoftmax):
    """Output layer that draws from torch's global random generators."""

    def __init__(self, shape: LayerShape, rate: float) -> None:
        super().__init__(shape)
        self.rate, self.up = rate, nn.Linear(shape.context_width, shape.embedding_width)

    def loss(self, hidden_TBC: Tensor, *arguments: Any) -> Tensor:
        return super().loss(dropout(self.up(hidden_TBC), self.rate, self.training), *arguments)


@pytest.mark.parametrize(
    "config",
    [
        smoke_trial(**{"training.epochs": 5, "training.averaging.switch_epoch": 3}),
        smoke_transformer(MosConfig(mixtures=2), precision="bf16"),
        smoke_transformer(CustomConfig.of(Projected, rate=0.3), precision="tf32"),
    ],
    ids=["lstm", "transformer", "custom"],
)
def test_pruned_trial_keeps_its_bits(tmp_path: Path, config: LanguageTrialConfig) -> None:
    straight = run_trial(config, directory=tmp_path / "straight", runtime=Runtime())
    folder = tmp_path / "stopped"
    first_loss, second_loss = (epoch.valid_loss for epoch in straight.model_epochs[:2])
    limits = {1: first_loss, 2: second_loss - 1e-9}  # a loss equal to the threshold continues
    for _ in range(2):  # a second search stops it again, without a step
        pruned = run_trial(config, directory=folder, runtime=Runtime(), stop_above=limits)
        assert pruned.state == "pruned"
        assert f"after epoch 2: its validation loss of {second_loss:.5f}" in str(pruned.cause)
        assert [epoch.valid_loss for epoch in pruned.model_epochs] == [first_loss, second_loss]
        assert {name.partition("-")[0] for name in names_in(folder)} == {*FILES[:4], "checkpoint"}
    epochs: list[Epoch] = []
    whole = run_trial(config, directory=folder, runtime=Runtime(), on_epoch=epochs.append)
    assert [epoch.epoch for epoch in epochs] == [*range(3, config.training.epochs + 1)]
    assert without_clocks(whole) == without_clocks(straight)
    for name in ("kept.safetensors", "spectrum.npy"):
        assert (folder / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()
    assert names_in(folder) == set(FILES)
    lines = [line.split(" ", 2)[2] for line in (folder / "log.txt").read_text().splitlines()]
    starts = [number for number, line in enumerate(lines) if line.startswith("started on ")]
    assert len(starts) == 3 and lines[-1] == "done"
    assert [line.split(":")[0] for line in lines[1 : starts[1]]] == ["epoch 1", "epoch 2", "pruned"]
    assert lines[starts[2] + 1].startswith("resumes from the checkpoint")


def test_gpu_checkpoint_resumes_on_cpu(tmp_path: Path) -> None:
    trial = smoke_trial()
    trainer = Trainer(trial, load(trial.corpus, data_dir=None), Runtime())
    for _ in range(3):
        trainer.step()
    tensors, state = trainer.snapshot()
    tensors["random.masks"] = torch.zeros(16, dtype=torch.uint8)  # the size of a GPU's state
    Checkpoints(TrialFolder(tmp_path, trial.trial_id)).save(3, tensors, state)
    assert run_trial(trial, directory=tmp_path, runtime=Runtime()).state == "done"
    assert "another kind of device" in (tmp_path / "log.txt").read_text()


@pytest.mark.parametrize(("epochs", "counted"), [(1, slice(0, 1)), (3, slice(1, 3))])
def test_epoch_time_excludes_the_warm_up(tmp_path: Path, epochs: int, counted: slice) -> None:
    config = smoke_trial(**{"training.epochs": epochs, "training.averaging.switch_epoch": 1})
    outcome = run_trial(config, directory=tmp_path, runtime=Runtime())
    times = [epoch.seconds for epoch in outcome.model_epochs][counted]
    assert outcome.metrics["seconds_per_epoch"] == pytest.approx(sum(times) / len(times))


def test_ranks_of_the_kept_epoch(tmp_path: Path) -> None:
    config = smoke_trial(**{"training.epochs": 3, "training.averaging.switch_epoch": 1})
    outcome = run_trial(config, directory=tmp_path, runtime=Runtime())
    best_epoch = outcome.model_epochs[int(outcome.metrics["kept_epoch"]) - 1]
    assert best_epoch.averaging
    model, corpus = kept_model(config, directory=tmp_path, runtime=Runtime())
    sigma = np.linalg.svd(log_p_matrix(model, corpus.valid[:512]), compute_uv=False)
    tolerance = 0.5 * np.sqrt(512 + 300 + 1) * sigma[0] * np.finfo(np.float32).eps
    assert best_epoch.press_rank == np.count_nonzero(sigma > tolerance)
    shares = sigma / sigma.sum()
    assert best_epoch.entropy_rank == pytest.approx(
        np.exp(-(shares * np.log(shares)).sum()), rel=1e-6
    )
    without = config.with_values({"evaluation.epoch_rank_contexts": None})
    plain = run_trial(without, directory=tmp_path / "without", runtime=Runtime())
    assert [epoch.valid_loss for epoch in plain.model_epochs] == [
        epoch.valid_loss for epoch in outcome.model_epochs
    ]
    assert {(epoch.press_rank, epoch.entropy_rank) for epoch in plain.model_epochs} == {
        (None, None)
    }


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "not a trial's config"),
        ('{"seed": -1}', "not a trial's config"),
        (None, "cannot read"),
    ],
)
def test_non_config_file(
    tmp_path: Path, content: str | None, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.json"
    if content is not None:
        file.write_text(content)
    assert main([str(file)]) == 2
    answer = capsys.readouterr().err
    assert answer.startswith("error: ") and sentence in answer


def measured(
    folder: Path, *names: str, config: LanguageTrialConfig | None = None, runtime: Runtime = RUNTIME
) -> Measurements:
    config = config or smoke_trial()
    measure_kept(config, directory=folder, runtime=runtime, names=names)
    return {name: TrialFolder(folder, config.trial_id).measurement(name) for name in names}


@pytest.mark.parametrize(
    "config",
    [
        smoke_trial().model_copy(update={"output_layer": SoftmaxConfig()}),
        smoke_transformer(MosConfig(mixtures=2)),
    ],
    ids=lambda config: config.kind,
)
def test_later_measurement_has_same_bits(tmp_path: Path, config: LanguageTrialConfig) -> None:
    at_once = run_trial(config, directory=tmp_path / "at once", runtime=RUNTIME, measurements=NAMES)
    patterns = METRICS[config.kind].split()
    assert all(any(fnmatchcase(name, one) for one in patterns) for name in at_once.metrics)
    bare = run_trial(config, directory=tmp_path / "later", runtime=RUNTIME, measurements=())
    assert set(bare.measurements) == {"training@1"}
    later = measured(tmp_path / "later", *NAMES, config=config)
    for name, measurement in later.items():
        assert measurement is not None and measurement[0] == at_once.measurements[name]
        assert measurement[0] or (name == "bent_softmax@1" and config.output_layer.name == "mos")
    assert spectrum_of(later) == np.load(tmp_path / "at once" / "spectrum.npy").tobytes()


def spectrum_of(measurements: Measurements) -> bytes:
    measurement = measurements["spectrum@1"]
    assert measurement is not None and measurement[1] is not None
    return measurement[1].tobytes()


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("done")
    run_trial(smoke_trial(), directory=folder, runtime=Runtime(), measurements=())
    return folder


@pytest.fixture
def folder(done: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(done, tmp_path / "trial"))


def test_measurement_is_taken_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trainer, "step", None)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    first = measured(folder, "top_k@1")
    spectrum_of(measured(folder, "spectrum@1"))
    assert before.items() <= {path.name: path.read_bytes() for path in folder.iterdir()}.items()
    for path in (folder / "measurement-spectrum@1.json", folder / "measurement-spectrum@1.npy"):
        content = path.read_bytes()
        path.write_text("{")
        measured(folder, "spectrum@1")
        assert path.read_bytes() == content, "a damaged measurement must be taken again"
    monkeypatch.setattr(kept_weights, "load_tensors", None)  # another read of the weights fails
    assert measured(folder, "top_k@1", "spectrum@1")["top_k@1"] == first["top_k@1"]


def test_measurements_before_failure_are_kept(folder: Path) -> None:
    with pytest.raises(UserError, match="word-similarity"):
        measured(
            folder, "perplexity@1", "word_similarity@1", "top_k@1", runtime=Runtime(data_dir=folder)
        )
    assert sorted(path.name for path in folder.glob("measurement-*")) == [
        "measurement-perplexity@1.json"
    ]


def test_damaged_weights(folder: Path, tmp_path: Path) -> None:
    path = folder / "kept.safetensors"

    def refused(directory: Path, sentence: str) -> None:
        with pytest.raises(UserError, match=sentence):
            measured(directory, "top_k@1")

    tensors, _ = load_tensors(path)
    save_tensors(path, tensors, {"trial_id": "another"})
    refused(folder, "another trial")
    path.write_bytes(path.read_bytes()[:100])
    refused(folder, "is not a checkpoint")
    path.unlink()
    for directory in (folder, tmp_path / "nowhere"):
        refused(directory, r"kept\.safetensors is missing")
    assert not (tmp_path / "nowhere").exists()


def test_new_training_forgets_measurements(folder: Path) -> None:
    config = smoke_trial()
    TrialFolder(folder, config.trial_id).write_measurement(
        "top_k@1", Measured({"perplexity": 1.0}, np.ones(3))
    )
    (folder / "result.json").unlink()
    run_trial(config, directory=folder, runtime=Runtime(), measurements=())
    assert not list(folder.glob("measurement-*"))
