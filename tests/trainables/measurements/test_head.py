"""The head of an open checkpoint: which tensor it is, and its ranks against numpy's."""

from __future__ import annotations

import re
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.support.checkpoints import (
    DTYPES,
    EMBEDDING,
    HEAD,
    NORM,
    head,
    write_checkpoint,
    write_shards,
)
from trainables.errors import UserError
from trainables.measurements import rank_file, weights_file
from trainables.measurements.head import find_head
from trainables.measurements.spectrum import Method
from trainables.measurements.weights_file import open_checkpoint

ROOT = Path(__file__).parents[3]
PYTHIA_NORM = "gpt_neox.final_layer_norm.weight"
PYTHIA = {"gpt_neox.embed_in.weight": head(), "embed_out.weight": head(), PYTHIA_NORM: np.ones(8)}


def written(folder: Path, tensors: Any, **options: Any) -> Path:
    return write_checkpoint(folder / "model.safetensors", tensors, **options)


@pytest.mark.parametrize(
    ("names", "expected", "reason"),
    [
        ([*PYTHIA], "embed_out.weight", r"beside the embedding, gpt_neox\.embed_in\.weight"),
        (["wte.weight", "wpe.weight", "ln_f.weight"], "wte.weight", "to which it is tied"),
        (
            ["transformer.wte.weight", "transformer.wpe.weight"],
            "transformer.wte.weight",
            "to which it is tied",
        ),
        ([EMBEDDING, NORM, HEAD], HEAD, "of its own"),
        ([EMBEDDING, "model.layers.0.mlp.up_proj.weight"], EMBEDDING, "to which it is tied"),
        (
            ["model.transformer.wte.weight", "model.transformer.ff_out.weight"],
            "model.transformer.ff_out.weight",
            "own",
        ),
        (
            ["model.transformer.wte.weight", "model.transformer.blocks.0.ff_out.weight"],
            "model.transformer.wte.weight",
            "tied",
        ),
        (
            ["language_model.model.embed_tokens.weight"],
            "language_model.model.embed_tokens.weight",
            "tied",
        ),
        (["language_model.lm_head.weight"], "language_model.lm_head.weight", "by its name"),
    ],
)
def test_the_head_is_told_by_its_name(
    tmp_path: Path, names: list[str], expected: str, reason: str
) -> None:
    path = written(tmp_path, {name: head(seed=i) for i, name in enumerate(names)})
    chosen = find_head(open_checkpoint(path))
    assert chosen.tensor.name == expected
    assert re.search(reason, chosen.reason)


def test_where_no_name_is_usual_or_another_file_may_have_the_head_it_is_asked_for(
    tmp_path: Path,
) -> None:
    path = written(
        tmp_path, {"encoder.embed_tokens.weight": head(), "decoder.embed_tokens.weight": head()}
    )
    with pytest.raises(
        UserError, match=r"no tensor with a usual name .* --tensor; its matrices are .*\(60 x 8\)"
    ):
        rank_file(path)
    assert rank_file(path, tensor="decoder.embed_tokens.weight").report["rank_rows"] == 60
    path = written(tmp_path, {EMBEDDING: head()}, config={"tie_word_embeddings": False})
    with pytest.raises(UserError, match="no tensor with a usual name"):
        rank_file(path)
    path = write_checkpoint(
        tmp_path / "model-00001-of-00002.safetensors", {EMBEDDING: head()}, config={}
    )
    with pytest.raises(UserError, match=r"one of several files, .* and another file may have one"):
        rank_file(path)
    index = write_shards(
        tmp_path,
        {path.name: {EMBEDDING: head()}, "model-00002-of-00002.safetensors": {HEAD: head()}},
    )
    assert rank_file(path).report["tensor"] == rank_file(index).report["tensor"] == HEAD


@pytest.mark.parametrize("method", ["gram", "qr"])
@pytest.mark.parametrize("shape", [(70, 20), (20, 70), (20, 20)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_singular_values_are_numpys(
    tmp_path: Path, dtype: str, shape: tuple[int, int], method: Method
) -> None:
    matrix = head(*shape, decay=1e-3)
    ranked = rank_file(
        written(tmp_path, {HEAD: matrix}, dtype=dtype), method=method, context_norm=1.0
    )
    sigma = np.linalg.svd(
        torch.from_numpy(matrix).to(DTYPES[dtype]).double().numpy(), compute_uv=False
    )
    assert ranked.spectrum.singular_values == pytest.approx(sigma, rel=1e-7)
    report = ranked.report
    energy = np.cumsum(sigma**2) / np.sum(sigma**2)
    assert report["effective_rank_1e-3"] == 1 + np.count_nonzero(energy < 1 - 1e-3)
    assert (report["sigma_max"], report["sigma_min"]) == pytest.approx(
        (sigma[0], sigma[-1]), rel=1e-7
    )
    assert (report["rank_rows"], report["rank_columns"], report["dtype"]) == (*shape, dtype)
    assert report["log_p_rank_bound"] == min(shape[0], shape[1] + 1)


def test_a_head_of_50304_words_and_width_512_in_float16_has_numpys_singular_values(
    tmp_path: Path,
) -> None:
    """With its bounds of KL within 60 s and 2 GB, in a process of its own, whose peak is that of
    nothing else."""
    random = np.random.default_rng(18)
    matrix = random.standard_normal((50_304, 512), dtype=np.float32) * np.geomspace(
        1, 1e-3, 512, dtype=np.float32
    )
    path = written(
        tmp_path, {"embed_out.weight": matrix, PYTHIA_NORM: np.ones(512)}, dtype="float16"
    )
    program = (
        "import sys, pathlib, numpy\n"
        "from trainables.measurements import rank_file\n"
        "from trainables.measurements.memory import PeakMemory\n"
        "memory, ranked = PeakMemory(), rank_file(pathlib.Path(sys.argv[1]))\n"
        "numpy.save(sys.argv[2], ranked.spectrum.singular_values)\n"
        "print(ranked.report['kl_rank_bound_1e-1'], memory.peak_mib())"
    )
    command = [sys.executable, "-c", program, str(path), str(tmp_path / "sigma.npy")]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    bound, peak_mib = run.stdout.split()
    assert 0 < int(bound) <= 512 and float(peak_mib) * 2**20 < 2e9
    sigma = np.linalg.svd(matrix.astype(np.float16).astype(np.float64), compute_uv=False)
    assert np.abs(np.load(tmp_path / "sigma.npy") / sigma - 1).max() < 1e-4


def test_the_matrix_is_never_held_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights_file, "BLOCK_BYTES", 2**18)
    path = written(tmp_path, {HEAD: head(40_000, 32), NORM: np.ones(32)}, dtype="float16")
    rank_file(path)  # what is loaded on first use
    tracemalloc.start()
    rank_file(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40_000 * 32 * 2, (
        "bytes of the matrix in float16, which is a quarter of it in float64"
    )


@pytest.mark.parametrize("shape", [(50, 8), (8, 50)])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_row_with_a_nan_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, shape: tuple[int, int], bad: float
) -> None:
    monkeypatch.setattr(weights_file, "BLOCK_BYTES", 8 * shape[1] * 2)
    matrix = np.ones(shape)
    matrix[6, 3] = bad
    with pytest.raises(UserError, match="row 6 "):
        rank_file(written(tmp_path, {HEAD: matrix, NORM: np.ones(shape[1])}, dtype=dtype))


def test_a_bias_of_the_output_counts(tmp_path: Path) -> None:
    for names in ((HEAD, "lm_head.bias"), ("transformer.wte.weight", "lm_head.bias")):
        tensors = {names[0]: head(), names[1]: np.ones(60)}
        assert rank_file(written(tmp_path, tensors)).report["log_p_rank_bound"] == 8 + 2
    tensors = {HEAD: head(), "model.layers.0.bias": np.ones(8)}
    assert rank_file(written(tmp_path, tensors)).report["log_p_rank_bound"] == 8 + 1


GAIN = np.linspace(0.5, 2, 8)


@pytest.mark.parametrize(
    ("tensors", "config", "gain"),
    [
        ({HEAD: head(), NORM: GAIN}, {"model_type": "llama"}, GAIN),
        ({EMBEDDING: head(), NORM: GAIN}, {"model_type": "gemma"}, 1 + GAIN),
        ({EMBEDDING: head(), NORM: GAIN}, {"model_type": "a", "text_config": {"model_type": "gemma3_text"}}, 1 + GAIN),
        ({HEAD: head(), NORM: GAIN - 2}, None, np.maximum(np.abs(GAIN - 2), np.abs(GAIN - 1))),
        ({"wte.weight": head(), "ln_f.weight": GAIN, "ln_f.bias": GAIN}, None, GAIN),
        ({"embed_out.weight": head(), "gpt_neox.final_layer_norm.weight": GAIN}, None, GAIN),
        ({HEAD: head()}, {"model_type": "olmo"}, np.ones(8)),
    ],
)  # fmt: skip
def test_contexts_are_bounded_by_the_final_norm(
    tmp_path: Path, tensors: Any, config: Any, gain: Any
) -> None:
    """As by a head times the gain, and contexts of norm sqrt(D)."""
    weights = next(value for value in tensors.values() if value.ndim == 2)
    scaled = {name: value / 64 if value.ndim == 2 else value for name, value in tensors.items()}
    report = rank_file(written(tmp_path, scaled, config=config, dtype="float64")).report
    assert report["context_norm"] == pytest.approx(8**0.5 * np.abs(gain).max())
    by_hand = written(tmp_path / "by_hand", {HEAD: weights / 64 * gain}, dtype="float64")
    expected = rank_file(by_hand, context_norm=8**0.5).report
    ranks = [report[f"kl_rank_bound_{nats}"] for nats in ("1e-1", "1e-2", "1e-3")]
    assert ranks == [expected[f"kl_rank_bound_{nats}"] for nats in ("1e-1", "1e-2", "1e-3")]
    assert ranks == sorted(ranks) and ranks[0] < ranks[2]


def test_without_a_norm_of_contexts_there_is_no_bound_of_kl(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {HEAD: head(), "h.0.weight": head(), NORM: np.ones(8)},
        config={"model_type": "llama"},
    )
    both = written(tmp_path / "both", {HEAD: head(), EMBEDDING: head(), NORM: np.ones(8)})
    for ranked, has_config in (
        (rank_file(path, tensor="h.0.weight"), True),
        (rank_file(written(tmp_path / "b", {HEAD: head()})), False),
        (rank_file(both, tensor=EMBEDDING), False),  # which no context is multiplied with
    ):
        assert (
            ranked.report["kl_rank_bound_1e-1"] is None and ranked.report["log_p_rank_bound"] == 9
        )
        assert "give --context-norm" in ranked.notes[-1]
        assert any("Taken for a plain softmax" in note for note in ranked.notes) != has_config
    assert rank_file(path, tensor="h.0.weight", context_norm=1e-9).report["kl_rank_bound_1e-3"] == 0
    with pytest.raises(UserError, match=r"model\.norm\.weight \(8\) .* must be finite"):
        rank_file(written(tmp_path / "c", {HEAD: head(), NORM: np.full(8, np.nan)}))


def test_a_head_whose_bounds_cannot_be_computed_keeps_its_spectrum(tmp_path: Path) -> None:
    path = written(tmp_path, {HEAD: head() * 1e200}, dtype="float64")
    ranked = rank_file(path, context_norm=1.0, method="qr")
    assert ranked.report["press_rank"] == 8 and ranked.report["kl_rank_bound_1e-1"] is None
    assert "too large for float64" in ranked.notes[-1]


@pytest.mark.parametrize(
    ("names", "config"),
    [
        ([EMBEDDING, NORM], {"model_type": "gemma2", "final_logit_softcapping": 30.0}),
        ([EMBEDDING, NORM, "model.layers.0.pre_feedforward_layernorm.weight"], None),
    ],
)
def test_bent_logits_have_no_bound(tmp_path: Path, names: list[str], config: Any) -> None:
    path = written(
        tmp_path,
        {name: head() if name == EMBEDDING else np.ones(8) for name in names},
        config=config,
    )
    ranked = rank_file(path, context_norm=1.0)
    assert ranked.report["press_rank"] == 8
    assert [ranked.report[name] for name in ("log_p_rank_bound", "kl_rank_bound_1e-1")] == [
        None,
        None,
    ]
    assert "Its logits are bent" in ranked.notes[1]


def test_a_value_that_the_method_cannot_tell_from_zero_is_said_to_be_one(tmp_path: Path) -> None:
    path = written(tmp_path, {HEAD: head(decay=1e-12)}, dtype="float64")
    assert any("--method qr" in note for note in rank_file(path, context_norm=1.0).notes)
    ranked = rank_file(path, context_norm=1.0, method="qr")
    assert ranked.report["sigma_min"] == pytest.approx(
        np.linalg.svd(head(decay=1e-12))[1][-1], rel=1e-2
    )


def test_a_matrix_file_has_what_it_always_had_and_takes_no_tensor(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", head())
    ranked = rank_file(tmp_path / "m.npy")
    assert "tensor" not in ranked.report and ranked.report["press_rank"] == 8
    with pytest.raises(UserError, match="--tensor and --context-norm are for safetensors files"):
        rank_file(tmp_path / "m.npy", tensor=HEAD)
