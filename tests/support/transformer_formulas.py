"""The Transformer as its papers define it, by head and position in float64.

Tests use it as independent truth: it shares only parameter names with the package.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from tests.support import output_layer_formulas
from trainables.config import TransformerConfig, TransformerTrialConfig


def rms_norm(x: Tensor, gain: Tensor) -> Tensor:
    """Zhang and Sennrich (2019), equation 4."""
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * gain


def turned(x_TK: Tensor) -> Tensor:
    """Rotate pair i by t / 10000^(2 i / K) radians (Su et al. 2021, equation 34)."""
    steps, width = x_TK.shape
    pairs = torch.complex(x_TK[:, : width // 2], x_TK[:, width // 2 :])
    angles = torch.tensor(
        [[t * 10_000.0 ** (-2 * i / width) for i in range(width // 2)] for t in range(steps)],
        dtype=torch.float64,
    )
    pairs = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([pairs.real, pairs.imag], 1)


def attention(x_TD: Tensor, weights: Mapping[str, Tensor], heads: int) -> Tensor:
    """Causal attention (Vaswani et al. 2017, section 3.2)."""
    q, k, v = (x_TD @ w.T for w in weights["attention.query_key_value.weight_OI"].chunk(3))
    width = x_TD.shape[1] // heads
    outputs = []
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        q_TK, k_TK, v_TK = turned(q[:, part]), turned(k[:, part]), v[:, part]
        rows = []
        for t in range(len(x_TD)):
            scores = k_TK[: t + 1] @ q_TK[t] / math.sqrt(width)
            rows.append((scores - scores.logsumexp(0)).exp() @ v_TK[: t + 1])
        outputs.append(torch.stack(rows))
    return torch.cat(outputs, 1) @ weights["attention.projection.weight_OI"].T


def feed_forward(x_TD: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
    """Shazeer (2020), equation 6."""
    gate, up = (x_TD @ w.T for w in weights["feed_forward.gate_up.weight_OI"].chunk(2))
    return (gate / (1 + torch.exp(-gate)) * up) @ weights["feed_forward.projection.weight_OI"].T


def contexts(config: TransformerConfig, at: Mapping[str, Tensor], tokens_T: Tensor) -> Tensor:
    x = at["embedding_VD"][tokens_T] * 4 * math.sqrt(config.width)
    for number in range(config.layers):
        start = f"layers.{number}."
        weights = {name.removeprefix(start): p for name, p in at.items() if name.startswith(start)}
        x = x + attention(rms_norm(x, weights["attention_norm.weight"]), weights, config.heads)
        x = x + feed_forward(rms_norm(x, weights["feed_forward_norm.weight"]), weights)
    return rms_norm(x, at["norm.weight"])


def output_weight(at: Mapping[str, Tensor]) -> Tensor:
    if "head.left_VR" in at:
        return at["head.left_VR"] @ at["head.right_RD"]
    return at.get("head.weight_VD", at["embedding_VD"])


def log_p(config: TransformerTrialConfig, at: Mapping[str, Tensor], tokens_T: Tensor) -> Tensor:
    output = {name.removeprefix("output."): p for name, p in at.items()}
    hidden_TD = contexts(config.model, at, tokens_T)
    return output_layer_formulas.log_p(config.output_layer, output, hidden_TD, output_weight(at))
