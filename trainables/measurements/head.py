"""The head (output matrix) of an open checkpoint, and bounds that follow from it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainables.errors import UserError
from trainables.measurements.head_bounds import kl_bounds, log_p_rank_bound
from trainables.measurements.weights_file import Checkpoint, StoredTensor, unique

UNTIED_NAMES = ("lm_head.weight", "embed_out.weight", "transformer.ff_out.weight")
"""Tensor names of a head: in most models, in Pythia (GPT-NeoX), and in the first OLMo."""
TIED_NAMES = ("embed_tokens.weight", "wte.weight", "embed_in.weight")
"""Tensor names of an embedding, which is the head if the checkpoint has no separate head."""
NORMS = ("model.norm.weight", "gpt_neox.final_layer_norm.weight", "ln_f.weight")
PLAIN_GAINS = (
    *("llama", "mistral", "mixtral", "olmo2", "olmo3", "olmoe", "phi3"),
    *("qwen2", "qwen2_moe", "qwen3", "qwen3_moe"),
)
ONE_PLUS_GAINS = (
    *("gemma", "gemma2", "gemma3", "gemma3_text"),
    *("qwen3_next", "qwen3_5", "qwen3_5_moe"),
)
"""Model types whose norm gain is 1 + the stored weight."""
CAPS = ("final_logit_softcapping", "logits_soft_cap")
KL_NATS = ("1e-1", "1e-2", "1e-3")


@dataclass(frozen=True, kw_only=True)
class Head:
    """A checkpoint's head, and why this tensor was chosen."""

    tensor: StoredTensor
    reason: str
    is_usual: bool
    """False for an unusual name. Nothing is then known about the matrix's input."""
    has_bias: bool


def find_head(checkpoint: Checkpoint, tensor: str | None = None) -> Head:
    """Return the head: `tensor` if given, else a separate head, else the tied embedding.

    Raises UserError if the head is missing, may be in another file, or is not a float matrix.
    """
    untied_names, tied_names = _matches(checkpoint, UNTIED_NAMES), _matches(checkpoint, TIED_NAMES)
    if tensor is not None:
        name, reason = tensor, "named by --tensor"
    elif untied_names:
        name = untied_names[0]
        reason = f"separate from the embedding, {tied_names[0]}" if tied_names else "by its name"
    elif not tied_names or checkpoint.config.get("tie_word_embeddings") is False:
        raise UserError(
            f"{checkpoint.path}: no tensor has a usual head name ({', '.join(UNTIED_NAMES)}, or a "
            f"tied embedding). Name one of these with --tensor: {checkpoint.matrices_text}."
        )
    elif checkpoint.is_shard:
        raise UserError(
            f"{checkpoint.path}: the only possible head is {tied_names[0]}, but another file may "
            "have a separate head. Add model.safetensors.index.json to the folder, or name the "
            "head with --tensor."
        )
    else:
        name, reason = tied_names[0], "the tied embedding, because there is no separate head"
    # A tied head may have a bias, too.
    biases = [name] if untied_names else [name, *UNTIED_NAMES]
    has_bias = bool(_matches(checkpoint, [f"{name.removesuffix('weight')}bias" for name in biases]))
    matrix = checkpoint.tensor(name)
    if len(matrix.shape) != 2 or not matrix.has_floats:
        raise UserError(
            f"{matrix.path}: {matrix} is {matrix.dtype}, not a matrix of float16, bfloat16, "
            "float32 or float64. Name another tensor with --tensor."
        )
    return Head(
        tensor=matrix,
        reason=reason,
        is_usual=name in (untied_names or tied_names),
        has_bias=has_bias,
    )


def _matches(checkpoint: Checkpoint, names: Iterable[str]) -> list[str]:
    return [name for name in (unique(checkpoint.files, ending) for ending in names) if name]


def bounds_of_head(
    checkpoint: Checkpoint, head: Head, context_norm: float | None
) -> tuple[dict[str, Any], list[str]]:
    """Return the head's bounds by metric name (None if unknown), and notes about them."""
    names = ("log_p_rank_bound", "context_norm", *(f"kl_rank_bound_{nats}" for nats in KL_NATS))
    bounds: dict[str, Any] = dict.fromkeys(names)
    words, width = head.tensor.shape
    cap = next((name for name in CAPS if checkpoint.config.get(name)), None)
    if cap is not None:
        return bounds, [
            f"Logits are capped ({cap} {checkpoint.config[cap]!s:.20} in config.json), so neither "
            "the rank of log P nor a KL divergence has a bound."
        ]
    bounds["log_p_rank_bound"] = log_p_rank_bound(words, width, bias=head.has_bias)
    notes = [] if checkpoint.config else ["There is no config.json, so a plain softmax is assumed."]
    gain_D, norm = np.ones(width), context_norm
    if norm is None:
        norm = math.sqrt(width)
        final_gain_D, note = _final_gain(checkpoint, head)
        notes.append(note)
        if final_gain_D is None:
            return bounds, notes
        gain_D = final_gain_D
    bounds["context_norm"] = norm * float(np.abs(gain_D).max())
    try:
        bounds_R1 = kl_bounds(head.tensor.blocks, gain_D=gain_D, norm=norm)
    except UserError as error:  # raising would lose the spectrum
        return bounds, [*notes, str(error)]
    bounds |= {
        f"kl_rank_bound_{nats}": int(np.argmax(bounds_R1 <= float(nats))) for nats in KL_NATS
    }
    return bounds, notes


def _final_gain(checkpoint: Checkpoint, head: Head) -> tuple[NDArray[np.float64] | None, str]:
    missing_note = "KL has no bound, because the norm of contexts is unknown. Set --context-norm."
    kind, width = checkpoint.config.get("model_type"), head.tensor.shape[1]
    [name, *_] = [*_matches(checkpoint, NORMS), ""]
    if not name and kind == "olmo" and head.is_usual:
        return np.ones(width), "Contexts come from OLMo's final norm, which has no gain."
    if not head.is_usual or not name or not checkpoint.files[name].exists():
        return None, missing_note
    gain = checkpoint.tensor(name)
    if gain.shape != (width,) or not gain.has_floats:
        return None, missing_note
    weight_D = gain.vector()
    if not np.isfinite(weight_D).all():
        raise UserError(f"{gain.path}: {gain} has a NaN or an infinity. Set --context-norm.")
    note = f"The bounds use the norm of contexts after the final norm, {name}"
    if not name.endswith(NORMS[0]) or kind in PLAIN_GAINS:
        return weight_D, f"{note}."
    if kind in ONE_PLUS_GAINS:
        return 1 + weight_D, f"{note}. In a {kind}, the gain is 1 + the weight."
    # The larger gain allows all contexts of the smaller one, so the bound holds for both.
    return np.maximum(np.abs(weight_D), np.abs(1 + weight_D)), (
        f"{note}. Without a known model_type in config.json, its gain is the weight or, as in "
        "Gemma, 1 + the weight. The bounds use the larger."
    )
