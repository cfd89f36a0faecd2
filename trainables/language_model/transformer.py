"""A modern decoder-only Transformer (Vaswani et al. 2017; Touvron et al. 2023, LLaMA).

Pre-norm RMSNorm (Zhang and Sennrich 2019), rotary positions (Su et al. 2021), SwiGLU layers
(Shazeer 2020), and no biases except the output layer's. A token sees only earlier tokens of its
window.

Shapes: T time, B batch, V vocabulary, D width, H heads, K head width, F feed-forward width, X
joined widths of several products, I and O input and output width of a product.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear, scaled_dot_product_attention, silu

from trainables.config import OutputLayerConfig, TransformerConfig
from trainables.draws import dropout
from trainables.language_model.base import Contexts, LanguageModel, LstmState

LOGIT_DEVIATION = 0.25
"""Initial standard deviation of logits without bias."""
NORM_EPSILON = 1e-6
ROTARY_BASE = 10_000.0
"""From one position to the next, pair i rotates by ROTARY_BASE^(-2 i / K) radians."""


class Rotation:
    """Rotary positions: elements i and i + K / 2 of a query or key rotate as a pair.

    The angle grows with the position.
    """

    def __init__(
        self, steps: int, head_width: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        exponent_i = torch.arange(0, head_width, 2, dtype=torch.float64, device=device) / head_width
        angle_Ti = torch.arange(steps, device=device).unsqueeze(1) * ROTARY_BASE**-exponent_i
        self.cos_TK = angle_Ti.cos().repeat(1, 2).to(dtype)
        self.sin_TK = torch.cat([-angle_Ti.sin(), angle_Ti.sin()], 1).to(dtype)

    def __call__(self, values_TK: Tensor) -> Tensor:
        """Return the rotated values; `values_TK` may have leading axes."""
        return values_TK * self.cos_TK + values_TK.roll(values_TK.shape[-1] // 2, -1) * self.sin_TK


rotation_of = functools.cache(Rotation)
"""Cached, because a captured CUDA graph reads its tensors from fixed addresses."""


def causal_attention(joint_BTX: Tensor, heads: int, rotation: Rotation) -> Tensor:
    """Return each token's attention to itself and earlier tokens, B x T x D.

    `joint_BTX` has queries, keys and values side by side: X = 3 D.
    """
    joint_3BHTK = joint_BTX.unflatten(2, (3, heads, -1)).permute(2, 0, 3, 1, 4)
    query_BHTK, key_BHTK = rotation(joint_3BHTK[:2])
    values_BHTK = scaled_dot_product_attention(query_BHTK, key_BHTK, joint_3BHTK[2], is_causal=True)
    return values_BHTK.transpose(1, 2).flatten(2)


class Product(nn.Module):
    """Linear layer without bias, in the dtype of its input."""

    def __init__(self, input_width: int, output_width: int) -> None:
        super().__init__()
        self.weight_OI = nn.Parameter(torch.empty(output_width, input_width))

    def initialise(self, generator: torch.Generator, factor: float = 1.0) -> None:
        """Draw normal weights with standard deviation `factor` / sqrt(I).

        With factor 1, outputs have the scale of inputs.
        """
        nn.init.normal_(
            self.weight_OI, 0.0, factor * self.weight_OI.shape[1] ** -0.5, generator=generator
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Return x W^T."""
        return linear(inputs, self.weight_OI.to(inputs.dtype))


class CausalAttention(nn.Module):
    """Multi-head attention of each token to itself and earlier tokens."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query_key_value = Product(width, 3 * width)
        self.projection = Product(width, width)

    def forward(self, inputs_BTD: Tensor, rotation: Rotation) -> Tensor:
        """Return B x T x D outputs."""
        joint_BTX = self.query_key_value(inputs_BTD)
        return self.projection(causal_attention(joint_BTX, self.heads, rotation))


class FeedForward(nn.Module):
    """SwiGLU: W_down (silu(W_gate x) * W_up x)."""

    def __init__(self, width: int, hidden_width: int) -> None:
        super().__init__()
        self.gate_up = Product(width, 2 * hidden_width)
        self.projection = Product(hidden_width, width)

    def forward(self, inputs_BTD: Tensor) -> Tensor:
        """Return B x T x D outputs."""
        gate_BTF, up_BTF = self.gate_up(inputs_BTD).chunk(2, -1)
        return self.projection(silu(gate_BTF) * up_BTF)


class TransformerLayer(nn.Module):
    """x + attention(RMSNorm(x)), then x + feed-forward(RMSNorm(x)). Added terms have dropout."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        width = config.width
        self.rate = config.dropout
        self.attention_norm = nn.RMSNorm(width, eps=NORM_EPSILON)
        self.attention = CausalAttention(width, config.heads)
        self.feed_forward_norm = nn.RMSNorm(width, eps=NORM_EPSILON)
        self.feed_forward = FeedForward(width, config.feed_forward_width)

    def initialise(self, generator: torch.Generator, projection_factor: float) -> None:
        """Draw the weights; `projection_factor` scales projections onto the residual stream."""
        for branch, joint in ((self.attention, "query_key_value"), (self.feed_forward, "gate_up")):
            getattr(branch, joint).initialise(generator)
            branch.projection.initialise(generator, projection_factor)

    def forward(
        self,
        hidden_BTD: Tensor,
        rotation: Rotation,
        dtype: torch.dtype,
        masks: torch.Generator | None,
    ) -> Tensor:
        """Return the residual stream in its own dtype; products are in `dtype`."""
        attention = self.attention(self.attention_norm(hidden_BTD).to(dtype), rotation)
        hidden_BTD = hidden_BTD + dropout(attention, self.rate, masks)
        feed_forward = self.feed_forward(self.feed_forward_norm(hidden_BTD).to(dtype))
        return hidden_BTD + dropout(feed_forward, self.rate, masks)


class Transformer(LanguageModel):
    """Transformer language model."""

    def __init__(
        self, config: TransformerConfig, output: OutputLayerConfig, vocabulary_size: int
    ) -> None:
        super().__init__(
            config,
            output,
            vocabulary_size,
            layers=[TransformerLayer(config) for _ in range(config.layers)],
            has_head=config.head == "untied",
        )
        self.norm = nn.RMSNorm(config.width, eps=NORM_EPSILON)
        self.config = config

    @property
    def embedding_deviation(self) -> float:
        """Initial standard deviation of embedding entries.

        The model divides embeddings by it before the first layer.
        """
        return LOGIT_DEVIATION * self.config.width**-0.5

    def initialise(self, generator: torch.Generator) -> None:
        """Draw normal weights whose products keep the input's scale at any width.

        Projections have a factor of 1 / sqrt(2 layers) (Radford et al. 2019), so the residual
        stream ends with about twice the embedding's variance.

        Context vectors have length sqrt(D), so small logits need a small embedding. When read, the
        embedding is divided by its deviation (compare Vaswani et al. 2017, section 3.4).
        """
        # If tied weights had one scale for both uses, a new model would predict the word just read.
        # Such models learn worse at scale quick.
        layers = self.config.layers
        nn.init.normal_(self.embedding_VD, 0.0, self.embedding_deviation, generator=generator)
        for layer in self.layers:
            assert isinstance(layer, TransformerLayer)
            layer.initialise(generator, (2 * layers) ** -0.5)
        self.output.initialise(generator)
        if self.head is not None:
            self.head.initialise(self.embedding_deviation, generator)

    def zero_state(self, batch: int) -> list[LstmState]:  # noqa: ARG002
        """Return an empty list, because windows are independent."""
        return []

    def contexts(
        self, tokens_TB: Tensor, state: list[LstmState], masks: torch.Generator | None = None
    ) -> Contexts:
        """Return the window's context vectors."""
        generator, dtype = self.mode(masks)
        config, rows_BT = self.config, tokens_TB.t()
        rotation = rotation_of(
            len(tokens_TB), config.width // config.heads, dtype, self.embedding_VD.device
        )
        embedding_BTD = embedding(rows_BT, self.embedding_VD)
        hidden_BTD = dropout(embedding_BTD / self.embedding_deviation, config.dropout, generator)
        for layer in self.layers:
            hidden_BTD = layer(hidden_BTD, rotation, dtype, generator)
        contexts_TBC = self.norm(hidden_BTD).transpose(0, 1)
        return Contexts(contexts_TBC, contexts_TBC, state)
