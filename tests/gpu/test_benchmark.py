"""The benchmark of GPUs: its operation counts, its order, and what it does with errors."""

from __future__ import annotations

import argparse
import sys

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import nll_loss
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import gpu
from gpu_proof import parts
from gpu_proof.timing import usual_trainer
from gpu_proof.trials import (
    CORPORA,
    LAYERS,
    STACKED,
    TRIALS,
    Model,
    flop_per_token,
    layer_config,
    random_corpus,
    transformer_trial,
    trial,
)
from tests.support.cpu_graphs import CpuGraphs
from trainables.config import MonotoneNnConfig, stack_key
from trainables.config.stacking import STACKED_LAYERS
from trainables.language_model import AwdLstm, Transformer
from trainables.stack import Stack
from trainables.training import Trainer

TINY = [
    "gpu",
    "--device",
    "cpu",
    "--scale",
    "tiny",
    "--steps",
    "1",
    "--corpora",
    "ptb",
    "--processes",
]


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    """The status of the process that has these options."""
    monkeypatch.setattr(sys, "argv", [*TINY, *options])
    with pytest.raises(SystemExit) as ended:
        gpu.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_transformers_have_lines_of_stacks_and_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    of_lines = (
        "--model",
        "transformer",
        "--layers",
        "softmax",
        "monotone_nn",
        "--precisions",
        "bf16",
    )
    assert run(monkeypatch, *of_lines, "--sizes", "3") == 0
    out = capsys.readouterr().out
    assert out.count("stack 3") == 1 and out.count("alone") == 2 and "torch.nn" not in out
    stack, alone = (
        next(line for line in out.splitlines() if how in line).split()
        for how in ("stack 3", "alone")
    )
    assert all(float(figure) > 0 for figure in stack[5:10]) and stack[10] == "-", stack
    assert all(float(figure) > 0 for figure in alone[7:9]), alone


@pytest.mark.parametrize("name", LAYERS)
def test_operations_of_a_transformer_are_those_that_the_framework_counts(name: str) -> None:
    config = transformer_trial(
        "ptb", layer_config(name, "ptb", "tiny"), "float32", "tiny", window=5
    )
    vocabulary, steps, batch = 50, 5, 3
    model = Transformer(config.model, config.output_layer, vocabulary).eval()
    model.initialise(torch.Generator().manual_seed(0))
    tokens = torch.zeros(steps, batch, dtype=torch.int64)
    # Attention by its plain formula: the counter does not see a CPU's kernel.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counted:
        hidden = model.contexts(tokens, []).dropped_TBC.flatten(0, 1)
        nll_loss(
            model.output.log_probabilities(hidden, model.embedding_VD), tokens.flatten()
        ).backward()
    assert counted.get_total_flops() == steps * batch * flop_per_token(config, vocabulary)


@pytest.mark.parametrize("name", LAYERS)
def test_operations_are_those_that_the_framework_counts(name: str) -> None:
    """In a step by the plain formulas, without the project's own losses and gradients."""
    config = trial("ptb", layer_config(name, "ptb", "tiny"), "float32", "tiny")
    vocabulary, steps, batch = 50, 5, 3
    model = AwdLstm(config.model, config.output_layer, vocabulary).eval()
    model.initialise(torch.Generator().manual_seed(0))
    tokens = torch.zeros(steps, batch, dtype=torch.int64)
    # oneDNN's LSTM is one operation that is not counted.
    with torch.backends.mkldnn.flags(enabled=False), FlopCounterMode(display=False) as counted:
        hidden = model.contexts(tokens, model.zero_state(batch)).h3_TBC.flatten(0, 1)
        nll_loss(
            model.output.log_probabilities(hidden, model.embedding_VD), tokens.flatten()
        ).backward()
    # The states before the window have no gradient.
    first = sum(2 * batch * 4 * out * out for _, out in config.model.layer_widths)
    assert counted.get_total_flops() == steps * batch * flop_per_token(config, vocabulary) - first


def test_a_step_of_penn_treebank_takes_203_gflop() -> None:
    config = trial("ptb", layer_config("gss", "ptb"), "float32", "paper")
    assert 20 * 70 * flop_per_token(config, CORPORA["ptb"][2]) == pytest.approx(203e9, rel=1e-3)


def test_every_output_layer_is_measured_in_a_stack_where_it_can_be() -> None:
    layers = {name: layer_config(name, "ptb") for name in LAYERS}
    assert {type(layers[name]) for name in STACKED} == set(STACKED_LAYERS)
    assert {
        name
        for name in LAYERS
        if stack_key(trial("ptb", layers[name], "tf32", "paper")) is not None
    } == {*STACKED}
    assert {layer.name for layer in layers.values()} == {*LAYERS}
    assert {type(layer) for layer in layers.values()} == {*STACKED_LAYERS, MonotoneNnConfig}


def test_what_was_asked_for_first_is_measured_first() -> None:
    jobs = gpu.jobs(
        argparse.Namespace(
            model="awd_lstm",
            sizes=[16, 1],
            corpora=["ptb", "wikitext-2"],
            layers=list(LAYERS),
            precisions=["tf32"],
            processes=[2],
        )
    )
    labels = [(job.corpus, job.layer, job.label) for job in jobs]
    assert labels[:3] == [
        ("ptb", "gss", "stack 16"),
        ("ptb", "gss", "alone"),
        ("ptb", "softmax", "stack 16"),
    ]
    assert len(set(jobs)) == len(jobs) == 2 * (2 * len(STACKED) + len(LAYERS) + 1) + 1 + 1
    places = {label: place for place, label in enumerate(labels)}
    in_order = [
        ("ptb", "lms_plif", "stack 16"),
        ("wikitext-2", "gss", "stack 16"),
        ("ptb", "gss", "spectrum"),
        ("ptb", "gss", "2 processes"),
        ("ptb", "gss", "stack 1"),
        ("ptb", "moc", "stack 16"),
        ("wikitext-2", "moc", "stack 1"),
    ]
    assert [places[label] for label in in_order] == sorted(places[label] for label in in_order)


def test_too_little_memory_and_an_error_are_lines_and_the_others_follow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stack(trainers: list[Trainer]) -> Stack:
        raise (
            torch.OutOfMemoryError("CUDA out of memory")
            if len(trainers) == 2
            else ValueError("a reason\nand more")
        )

    monkeypatch.setattr(gpu, "Stack", stack)
    of_layer = ("--layers", "gss", "--precisions", "tf32")
    assert run(monkeypatch, *of_layer, "--sizes", "2") == 0
    assert run(monkeypatch, *of_layer, "--sizes", "2", "1") == 1
    out = capsys.readouterr().out
    assert out.count("out of memory") == 2
    assert "failed: ValueError: a reason\n" in out
    assert out.count("alone") == out.count("spectrum ") == 2


def test_a_step_whose_parts_cannot_be_timed_keeps_its_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors = iter([torch.OutOfMemoryError(), RuntimeError("capture")])

    def parts_ms(*_of_parts: object, **_calls: int) -> parts.PartsMs:
        raise next(errors)

    monkeypatch.setattr(gpu, "parts_ms", parts_ms)
    bench = gpu.Bench("awd_lstm", "cpu", "tiny", 1)
    lines = [bench.line(gpu.Job("stack", "ptb", "gss", "tf32", 2)) for _ in range(2)]
    assert [line.note for line in lines] == [
        "out of memory where the parts are timed",
        "parts failed: RuntimeError: capture",
    ]
    assert [line.failed for line in lines] == [False, True]
    assert all(line.step_ms and line.seconds and line.parts is None for line in lines)


@pytest.mark.parametrize("model", TRIALS)
@pytest.mark.parametrize("name", STACKED)
def test_the_parts_of_a_step_can_be_captured(
    monkeypatch: pytest.MonkeyPatch, name: str, model: Model
) -> None:
    """They neither read, draw nor bring anything from the host."""
    graphs = CpuGraphs()
    monkeypatch.setattr(parts, "graphs_on", lambda _device: graphs)
    config = TRIALS[model]("ptb", layer_config(name, "ptb", "tiny"), "float32", "tiny")
    trainers = [usual_trainer(config, random_corpus("ptb", "tiny"), "cpu") for _ in range(2)]
    assert min(parts.parts_ms(trainers, calls=2)) > 0
    assert (graphs.as_it_stands, graphs.captures, graphs.replays) == (3, 3, 9)


def test_no_line_begins_after_the_budget(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(monkeypatch, "--layers", "gss", "--precisions", "tf32", "--sizes", "1", "--budget", "0")
        == 0
    )
    assert capsys.readouterr().out.splitlines()[-1] == "3 lines are left: the 0 s are over"
