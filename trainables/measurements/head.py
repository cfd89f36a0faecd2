"""The head of an open checkpoint: which of its tensors it is, its ranks, and what they bound.

Rows are words and columns the width, as PyTorch stores a head. Legend: V words, D width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh

from trainables.errors import UserError
from trainables.measurements.head_bounds import kl_bounds, log_p_rank_bound
from trainables.measurements.matrix_file import EPS, EpsName, spectrum_of_file
from trainables.measurements.ranks import rank_report, require_resolved
from trainables.measurements.spectrum import (
    GramSpectrum,
    Method,
    Spectrum,
    matrix_spectrum,
    require_squarable,
    resolution,
    spectrum_stream,
)
from trainables.measurements.weights_file import (
    DTYPE_NAMES,
    Checkpoint,
    StoredTensor,
    is_weights,
    open_checkpoint,
    unique,
)

UNTIED = ("lm_head.weight", "embed_out.weight", "transformer.ff_out.weight")
"""Heads of their own: of Llama, Mistral, OLMo, GPT-J and most others; of Pythia (GPT-NeoX); of the
first OLMo."""
TIED = ("embed_tokens.weight", "wte.weight", "embed_in.weight")
"""Embeddings of the same families and of GPT-2, which are the head where there is no other."""
NORMS = ("model.norm.weight", "gpt_neox.final_layer_norm.weight", "ln_f.weight")
"""The gain of the norm before the head."""
PLAIN_GAINS = (
    "llama",
    "mistral",
    "mixtral",
    "olmo2",
    "olmo3",
    "olmoe",
    "qwen2",
    "qwen2_moe",
    "qwen3",
    "qwen3_moe",
    "phi3",
)
ONE_PLUS_GAINS = (
    "gemma",
    "gemma2",
    "gemma3",
    "gemma3_text",
    "qwen3_next",
    "qwen3_5",
    "qwen3_5_moe",
)
"""Model types whose gain is 1 + the stored weight."""
PLAIN = "Taken for a plain softmax, as no config.json beside it says whether its logits are bent."
CAPS = ("final_logit_softcapping", "logits_soft_cap")
"""Settings of config.json that bend the logits."""
KL_NATS = ("1e-1", "1e-2", "1e-3")
LAPACK_WIDTH = 4096
"""Up to this width LAPACK alone is about as fast as the method that needs torch, which takes
seconds to load."""


@dataclass(frozen=True, kw_only=True)
class RankedFile:
    """The ranks of the matrix in a file."""

    report: dict[str, Any]
    spectrum: Spectrum
    notes: tuple[str, ...] = ()
    """What a person should know of them, a sentence each."""


@dataclass(frozen=True, kw_only=True)
class Head:
    """The tensor of a checkpoint that is its head, and why."""

    tensor: StoredTensor
    reason: str
    is_usual: bool
    """Whether it has a usual name: of another matrix nobody knows what it is multiplied with."""
    has_bias: bool


def rank_file(
    path: Path,
    *,
    tensor: str | None = None,
    context_norm: float | None = None,
    method: Method = "gram",
    eps: EpsName = "float32",
) -> RankedFile:
    """The ranks of the matrix in a .npy file (see `rank_of_file`), or of the head of a checkpoint.

    Of a head there are also the tensor's name and type, `sigma_min`, `log_p_rank_bound` (see there)
    and, where a norm of contexts is known, `kl_rank_bound_1e-1` and so on: the least rank of a head
    that is certain to lose at most so many nats at any context (see `kl_bounds`). None where there
    is no such bound. `context_norm` is a greatest norm of contexts; without it that of the final
    norm counts. `tensor` names the head; without it the usual names are tried.

    Raises UserError as `rank_of_file` and `open_checkpoint` do, and where no tensor, or no usual
    one, is a head."""
    if not is_weights(path):
        if tensor is not None or context_norm is not None:
            raise UserError(
                f"--tensor and --context-norm are for safetensors files, and {path} is none: leave "
                f"them out."
            )
        spectrum = spectrum_of_file(path, method=method, eps=eps)
        return RankedFile(report=dict(rank_report(spectrum, eps=EPS[eps])), spectrum=spectrum)
    checkpoint = open_checkpoint(path)
    head = find_head(checkpoint, tensor)
    spectrum = head_spectrum(head.tensor, method, eps)
    bounds, notes = _bounds(checkpoint, head, context_norm)
    sigma_R = spectrum.singular_values
    least = resolution(method, rows=spectrum.rows, columns=spectrum.columns)
    if spectrum.rows < spectrum.columns:
        notes.append(
            "Its rows are taken for words, and are fewer than its columns: a head has them the "
            "other way round."
        )
    if sigma_R[-1] < least * sigma_R[0]:
        cure = (
            "take --method qr, which tells smaller ones" if method == "gram" else "read it as zero"
        )
        notes.append(
            f"sigma_min is less than the method tells from zero ({least:.2g} of the largest): "
            f"{cure}."
        )
    return RankedFile(
        report={
            "tensor": head.tensor.name,
            "dtype": DTYPE_NAMES[head.tensor.dtype],
            **rank_report(spectrum, eps=EPS[eps]),
            "sigma_min": float(sigma_R[-1]),
            **bounds,
        },
        spectrum=spectrum,
        notes=(f"The head is {head.tensor}: {head.reason}.", *notes),
    )


def find_head(checkpoint: Checkpoint, tensor: str | None = None) -> Head:
    """The tensor of that name, or the one with the usual name of a head; a head of its own before a
    tied one.

    Raises UserError where there is none, or where it cannot be told.
    """
    names = checkpoint.names
    untied = [name for name in (unique(names, usual) for usual in UNTIED) if name]
    tied = [name for name in (unique(names, usual) for usual in TIED) if name]
    if tensor is not None:
        name, reason = tensor, "--tensor names it"
    elif untied:
        name = untied[0]
        reason = f"a matrix of its own beside the embedding, {tied[0]}" if tied else "by its name"
    elif not tied or checkpoint.config.get("tie_word_embeddings") is False:
        raise UserError(
            f"{checkpoint.path} has no tensor with a usual name of a head ({', '.join(UNTIED)}, or "
            f"where that is the "
            f"head too the embedding's): name one with --tensor; its matrices are "
            f"{checkpoint.listed}."
        )
    elif checkpoint.is_shard:
        raise UserError(
            f"{checkpoint.path} is one of several files, has no head but {tied[0]}, and another "
            f"file may have one: put "
            "the index, model.safetensors.index.json, beside it, or name the head with --tensor."
        )
    else:
        name, reason = tied[0], "the embedding, to which it is tied, as there is no head of its own"
    # A tied head may have a bias, too.
    biases = [name] if untied else [name, *UNTIED]
    has_bias = any(unique(names, f"{weight.removesuffix('weight')}bias") for weight in biases)
    return Head(
        tensor=checkpoint.tensor(name),
        reason=reason,
        is_usual=name in (untied or tied),
        has_bias=has_bias,
    )


def head_spectrum(
    tensor: StoredTensor, method: Method = "gram", eps: EpsName = "float32"
) -> Spectrum:
    """All singular values of a stored matrix, streamed; in memory only where it has fewer rows than
    columns.

    Raises UserError as `rank_of_file` does.
    """
    blocks = tensor.blocks()
    try:
        first_ND = next(blocks)
        rows, columns = tensor.shape
        require_resolved(method, rows=rows, columns=columns, eps=EPS[eps])
        if rows < columns:
            return matrix_spectrum(np.concatenate([first_ND, *blocks]), method=method)
        light = method == "gram" and columns <= LAPACK_WIDTH
        stream = _LapackGram(columns) if light else spectrum_stream(method, columns)
        for block_ND in chain([first_ND], blocks):
            stream.update(block_ND)
        return stream.finish()
    except MemoryError as error:
        raise UserError(
            f"{tensor} needs more memory than there is: name a smaller matrix with --tensor, or "
            f"take a larger machine."
        ) from error


class _LapackGram(GramSpectrum):
    """The same without torch."""

    def _values(self) -> NDArray[np.float64]:
        require_squarable(self._largest)
        squares_D = eigvalsh(self._square_VV, lower=True, overwrite_a=True, check_finite=False)
        return np.sqrt(np.maximum(squares_D[::-1], 0.0))


def _bounds(
    checkpoint: Checkpoint, head: Head, context_norm: float | None
) -> tuple[dict[str, Any], list[str]]:
    """The metrics of what the head bounds, and sentences on them."""
    names = ("log_p_rank_bound", "context_norm", *(f"kl_rank_bound_{nats}" for nats in KL_NATS))
    bounds: dict[str, Any] = dict.fromkeys(names)
    words, width = head.tensor.shape
    if cap := _cap(checkpoint):
        return bounds, [
            f"Its logits are bent ({cap}), so it bounds neither the rank of log P nor a KL "
            f"divergence."
        ]
    bounds["log_p_rank_bound"] = log_p_rank_bound(words, width, bias=head.has_bias)
    gain_D, notes = np.ones(width), [] if checkpoint.config else [PLAIN]
    norm = context_norm
    if norm is None and head.is_usual:
        gain, note = _final_gain(checkpoint, width)
        if gain is not None:
            gain_D, norm = gain, math.sqrt(width)
            notes.append(note)
    if norm is None:
        return bounds, [
            *notes,
            "How large contexts are is not known, so there are no bounds of KL: give "
            "--context-norm.",
        ]
    bounds["context_norm"] = norm * float(np.abs(gain_D).max())
    try:
        bounds_R1 = kl_bounds(head.tensor.blocks, gain_D=gain_D, norm=norm)
    except UserError as error:  # no reason to lose the spectrum, which took as long
        return bounds, [*notes, str(error)]
    bounds |= {
        f"kl_rank_bound_{nats}": int(np.argmax(bounds_R1 <= float(nats))) for nats in KL_NATS
    }
    return bounds, notes


def _cap(checkpoint: Checkpoint) -> str:
    """What bends the logits; "" where nothing is known to."""
    for name in CAPS:
        if cap := checkpoint.config.get(name):
            return f"{name} {cap!s:.20} in config.json"
    names = checkpoint.names
    norms_of_gemma = any("pre_feedforward_layernorm" in name for name in names)
    if (
        not checkpoint.config
        and norms_of_gemma
        and not any("self_attn.q_norm" in name for name in names)
    ):
        return "by its tensors it is a Gemma 2, whose softcap is 30"
    return ""


def _final_gain(checkpoint: Checkpoint, width: int) -> tuple[NDArray[np.float64] | None, str]:
    """D factors that a normed vector, of norm sqrt(D) at most, is multiplied with before the head;
    what they are."""
    kind = checkpoint.config.get("model_type")
    name = next(
        (name for name in (unique(checkpoint.names, usual) for usual in NORMS) if name), None
    )
    if name is None:
        if kind == "olmo":
            return np.ones(width), "Contexts are those of OLMo's final norm, which has no gain."
        return None, ""
    stored = checkpoint.tensors.get(name)
    if stored is None or stored.shape != (width,):
        return None, ""
    weight_D = stored.vector()
    if not np.isfinite(weight_D).all():
        raise UserError(
            f"{stored} of {stored.path} must be finite, and is not: give --context-norm instead."
        )
    note = f"Contexts are bounded by the final norm, {name}"
    if not name.endswith(NORMS[0]) or kind in PLAIN_GAINS:
        return weight_D, f"{note}."
    if kind in ONE_PLUS_GAINS:
        return 1 + weight_D, f"{note}, whose gain is 1 + its weight in a {kind}."
    # A context within the smaller gain is one within the larger, so that the bound holds for both.
    larger_D = np.maximum(np.abs(weight_D), np.abs(1 + weight_D))
    return larger_D, (
        f"{note}, whose gain may be its weight or, as in Gemma, 1 + its weight: the larger counts, "
        f"as no config.json "
        "beside it has a model_type that is known here."
    )
