from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.checkpoints import (
    EMBEDDING,
    HEAD,
    NORM,
    head,
    write_checkpoint,
    write_shards,
)
from trainables.errors import UserError
from trainables.measurements import Method, PeakMemory, rank_file, status_mib, weights_file

PYTHIA_NORM = "gpt_neox.final_layer_norm.weight"
LLAMA = {"model_type": "llama"}


def saved(folder: Path, matrix: NDArray[Any]) -> Path:
    np.save(folder / "matrix.npy", matrix)
    return folder / "matrix.npy"


def written(folder: Path, tensors: Any, **options: Any) -> Path:
    return write_checkpoint(folder / "model.safetensors", tensors, **options)


@pytest.mark.parametrize("method", ["gram", "qr"])
@pytest.mark.parametrize("dtype", ["<f2", ">f4", "<f8"])
@pytest.mark.parametrize("shape", [(60, 20), (20, 60)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_matrix_of_known_rank(
    tmp_path: Path, method: Method, dtype: str, shape: tuple[int, int], order: Any
) -> None:
    """Even float16 represents these integers exactly, so the matrix has rank 5 in every dtype."""
    random = np.random.default_rng(0)
    product = random.integers(-4, 5, (shape[0], 5)) @ random.integers(-4, 5, (5, shape[1]))
    report = rank_file(saved(tmp_path, product.astype(dtype, order=order)), method=method).report
    assert report["press_rank"] == 5
    assert (report["rank_rows"], report["rank_columns"], report["rank_method"]) == (*shape, method)
    assert report["sigma_max"] == pytest.approx(float(np.linalg.norm(product, 2)), rel=1e-12)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((3, 3), dtype=np.int64), "int64"),
        (np.ones((3, 3), dtype=np.longdouble), "longdouble|float128"),
        (np.ones((3, 3, 3)), r"shape \(3, 3, 3\)"),
        (np.ones((0, 3)), r"shape \(0, 3\)"),
        (np.array([[None]]), r"numpy\.save"),
    ],
)
def test_arrays_without_a_rank(tmp_path: Path, matrix: NDArray[Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        rank_file(saved(tmp_path, matrix))


def test_non_npy_files(tmp_path: Path) -> None:
    path, archive = saved(tmp_path, np.ones((100, 10))), tmp_path / "matrices.npz"
    for content in (b"", b"not a matrix at all", path.read_bytes()[:10], path.read_bytes()[:1000]):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"numpy\.save"):
            rank_file(path)
    np.savez(archive, np.ones((3, 3)))
    for other, message in ((archive, r"numpy\.save"), (tmp_path / "none.npy", "No such file")):
        with pytest.raises(UserError, match=message):
            rank_file(other)
    with pytest.raises(UserError, match="--tensor"):
        rank_file(saved(tmp_path, head()), tensor=HEAD)


@pytest.mark.parametrize(
    ("names", "expected", "reason"),
    [
        (["gpt_neox.embed_in.weight", "embed_out.weight"], "embed_out.weight", "separate from"),
        (["transformer.wte.weight", "wpe.weight"], "transformer.wte.weight", "tied"),
        ([EMBEDDING, HEAD], HEAD, "separate from"),
        (["m.wte.weight", "n.wte.weight", "wte.weight"], "wte.weight", "tied"),
        (["language_model.lm_head.weight"], "language_model.lm_head.weight", "by its name"),
    ],
)  # fmt: skip
def test_head_is_found_by_name(
    tmp_path: Path, names: list[str], expected: str, reason: str
) -> None:
    ranked = rank_file(written(tmp_path, {name: head(seed=i) for i, name in enumerate(names)}))
    assert ranked.report["tensor"] == expected and reason in ranked.notes[0]


def test_missing_head(tmp_path: Path) -> None:
    two = {"encoder.embed_tokens.weight": head(), "decoder.embed_tokens.weight": head()}
    path = written(tmp_path, {**two, "bias": np.ones(9)})
    with pytest.raises(UserError, match=r"usual head name.*--tensor.*\(60 x 8\)"):
        rank_file(path)
    with pytest.raises(UserError, match=r"bias \(9\).*not a matrix"):
        rank_file(path, tensor="bias")
    assert rank_file(path, tensor="decoder.embed_tokens.weight").report["rank_rows"] == 60
    with pytest.raises(UserError, match="usual head name"):
        untied = {"tie_word_embeddings": False}
        rank_file(written(tmp_path, {EMBEDDING: head()}, config=untied))
    path = tmp_path / "model-00001-of-00002.safetensors"
    write_checkpoint(path, {EMBEDDING: head()}, config={})
    with pytest.raises(UserError, match="another file"):
        rank_file(path)
    shards = {path.name: {EMBEDDING: head()}, "model-00002-of-00002.safetensors": {HEAD: head()}}
    index = write_shards(tmp_path, shards)
    assert rank_file(path).report["tensor"] == rank_file(index).report["tensor"] == HEAD


def test_matrix_is_never_held_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The measured memory includes the mapped file: float16 needs a quarter of float64's bytes."""
    monkeypatch.setattr(weights_file, "BLOCK_BYTES", 2**20)
    matrix = np.random.default_rng(18).standard_normal((400_000, 16), dtype=np.float32)
    rank_file(written(tmp_path, {HEAD: matrix[:100]}))  # load what is imported on first use
    path = written(tmp_path, {HEAD: matrix, NORM: np.ones(16)}, dtype="float16")
    before_mib, memory = status_mib("VmRSS"), PeakMemory()
    rank_file(path)
    assert before_mib is not None and memory.peak_mib() - before_mib < 8 * matrix.size / 2**20


def test_missing_memory_field_is_unknown() -> None:
    assert status_mib("VmNone") is None
    assert 1 < (status_mib("VmRSS") or 0) <= (status_mib("VmHWM") or 0)


@pytest.mark.parametrize(
    ("names", "rank"),
    [
        (["transformer.wte.weight", "lm_head.bias"], 8 + 2),
        ([HEAD, "model.layers.0.bias"], 8 + 1),
    ],
)
def test_output_bias_adds_one_rank(tmp_path: Path, names: list[str], rank: int) -> None:
    path = written(tmp_path, {names[0]: head(), names[1]: np.ones(60)})
    assert rank_file(path).report["log_p_rank_bound"] == rank


GAIN = np.linspace(0.5, 2, 8)


@pytest.mark.parametrize(
    ("tensors", "config", "gain"),
    [
        ({HEAD: head(), NORM: GAIN}, LLAMA, GAIN),
        ({EMBEDDING: head(), NORM: GAIN}, {"text_config": {"model_type": "gemma3_text"}}, 1 + GAIN),
        ({HEAD: head(), NORM: GAIN - 2}, None, np.maximum(np.abs(GAIN - 2), np.abs(GAIN - 1))),
        ({"embed_out.weight": head(), PYTHIA_NORM: GAIN}, None, GAIN),
        ({HEAD: head()}, {"model_type": "olmo"}, np.ones(8)),
    ],
)  # fmt: skip
def test_final_norm_bounds_contexts(tmp_path: Path, tensors: Any, config: Any, gain: Any) -> None:
    """Multiplying the head by the norm's gain gives the same bound.

    All contexts then have norm sqrt(D).
    """
    scaled = {name: value / 64 if value.ndim == 2 else value for name, value in tensors.items()}
    report = rank_file(written(tmp_path, scaled, config=config, dtype="float64")).report
    assert report["context_norm"] == pytest.approx(8**0.5 * np.abs(gain).max())
    by_hand = written(tmp_path / "by_hand", {HEAD: head() / 64 * gain}, dtype="float64")
    expected = rank_file(by_hand, context_norm=8**0.5).report
    ranks = {name: rank for name, rank in expected.items() if name.startswith("kl_rank_bound")}
    assert len({*ranks.values()}) > 1 and ranks.items() <= report.items()


def test_kl_is_unbounded_without_norm(tmp_path: Path) -> None:
    path = written(tmp_path, {"h.0.weight": head(), HEAD: head(), NORM: np.ones(8)}, config=LLAMA)
    two_matrices = written(tmp_path / "both", {HEAD: head(), EMBEDDING: head(), NORM: np.ones(8)})
    for ranked in (
        rank_file(path, tensor="h.0.weight"),
        rank_file(written(tmp_path / "b", {HEAD: head()})),
        rank_file(two_matrices, tensor=EMBEDDING),  # an embedding is not multiplied by contexts
    ):
        assert ranked.report["kl_rank_bound_1e-1"] is None
        assert ranked.report["log_p_rank_bound"] == 9
        assert "--context-norm" in ranked.notes[-1]
    assert rank_file(path, tensor="h.0.weight", context_norm=1e-9).report["kl_rank_bound_1e-3"] == 0
    with pytest.raises(UserError, match=r"model\.norm\.weight .* NaN"):
        rank_file(written(tmp_path / "c", {HEAD: head(), NORM: np.full(8, np.nan)}))


def test_spectrum_survives_bounds_that_overflow(tmp_path: Path) -> None:
    path = written(tmp_path, {HEAD: head() * 1e200}, dtype="float64")
    ranked = rank_file(path, context_norm=1.0, method="qr")
    assert ranked.report["press_rank"] == 8 and ranked.report["kl_rank_bound_1e-1"] is None
    assert "float64" in ranked.notes[-1]


def test_bent_logits_have_no_bound(tmp_path: Path) -> None:
    config = {"model_type": "gemma2", "final_logit_softcapping": 30.0}
    tensors = {EMBEDDING: head(), NORM: np.ones(8)}
    ranked = rank_file(written(tmp_path, tensors, config=config), context_norm=1.0)
    assert ranked.report["press_rank"] == 8 and "capped" in ranked.notes[1]
    assert ranked.report["log_p_rank_bound"] is ranked.report["kl_rank_bound_1e-1"] is None


def test_note_on_unresolved_sigma_min(tmp_path: Path) -> None:
    path = written(tmp_path, {HEAD: head(decay=1e-12)}, dtype="float64")
    assert any("--method qr" in note for note in rank_file(path, context_norm=1.0).notes)
