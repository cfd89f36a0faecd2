"""Configs of output layers (see `output_layers`)."""

from __future__ import annotations

import sys
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt

from trainables.config.frozen import Frozen, Rate, Sha256, TwoOrMore
from trainables.config.user_code import register
from trainables.errors import UserError


class SoftmaxConfig(Frozen):
    """log_softmax(x)."""

    name: Literal["softmax"] = "softmax"


class SigSoftmaxConfig(Frozen):
    """log_softmax(2x - ln(1 + e^x)) (Kanai et al. 2018)."""

    name: Literal["sigsoftmax"] = "sigsoftmax"


class GssConfig(Frozen):
    """Generalized SigSoftmax (AAAI 2021, eqs. 3 and 5).

    log_softmax(k(x - c) + c - (k - 1) softplus(x - c)).
    """

    name: Literal["gss"] = "gss"
    c: float
    k: PositiveFloat


class SoftcapConfig(Frozen):
    """log_softmax(f(x)) with a bounded f: see `output_layers.softcap`.

    tanh: cap tanh(x / cap), as in Gemma 2 (arXiv 2408.00118). sigmoid: 23 sigmoid((x + 5) / 7.5),
    as in modded-nanogpt, with all three numbers multiplied by cap / 23.
    """

    name: Literal["softcap"] = "softcap"
    form: Literal["tanh", "sigmoid"] = "tanh"
    cap: PositiveFloat
    """Upper bound of f; the lower bound is -cap (tanh) or 0 (sigmoid)."""


SOFTCAPS = {
    **{
        f"tanh {cap:g}": SoftcapConfig(form="tanh", cap=cap)
        for cap in (5.0, 10.0, 15.0, 20.0, 30.0)
    },
    **{
        f"sigmoid {cap:g}": SoftcapConfig(form="sigmoid", cap=cap)
        for cap in (5.0, 10.0, 15.0, 20.0, 23.0, 30.0)
    },
}
"""Caps that `bent_softmax@1` tries, by name. Gemma 2 has tanh 30, nanochat tanh 15, modded-nanogpt
sigmoid 23."""
TURNS: dict[str, SoftcapConfig | GssConfig] = {
    **{f"tanh {cap:g}": SoftcapConfig(form="tanh", cap=cap) for cap in (1000.0, 60.0, 30.0, 15.0)},
    **{f"softplus {eps:g}": GssConfig(c=0.0, k=1 / (1 + eps)) for eps in (0.01, 0.1, 1.0)},
}
"""Functions near the identity that raise the rank, by name: `turned_softmax@1` tries them.

softplus eps: (x + eps softplus(x)) / (1 + eps), which is GSS with c = 0 and k = 1 / (1 + eps).
"""


class PlifConfig(Frozen):
    """Increasing function, linear on equal intervals of [-limit, limit] (Ganea et al. 2019).

    The outermost pieces continue beyond the limit.
    """

    knots: TwoOrMore = 100_000
    """Number of intervals, each with its own slope."""
    limit: PositiveFloat = 20.0


class LmsPlifConfig(PlifConfig):
    """log_softmax(f(x)) with a learned piecewise linear f (Ganea et al. 2019)."""

    name: Literal["lms_plif"] = "lms_plif"
    learning_rate: PositiveFloat = 0.02


class LmsPlifFrozenConfig(PlifConfig):
    """LMS-PLIF whose random slopes are never trained (AAAI 2021, Table 3)."""

    name: Literal["lms_plif_frozen"] = "lms_plif_frozen"


class MixtureConfig(Frozen):
    """Mixture of K context vectors tanh(U_k h + b_k), weighted by softmax(W_pi h).

    Locked dropout (`latent_dropout`) acts on these vectors.
    """

    mixtures: PositiveInt = 15
    latent_dropout: Rate = 0.29


class MosConfig(MixtureConfig):
    """Mixture of Softmaxes (Yang et al. 2018)."""

    name: Literal["mos"] = "mos"


class MocConfig(MixtureConfig):
    """Mixture of Contexts, mixed before one softmax: rank at most d + 2 (Yang et al. 2018)."""

    name: Literal["moc"] = "moc"


class MosPlifConfig(MixtureConfig, PlifConfig):
    """Mixture of Softmaxes with one LMS-PLIF function on all logits (Ganea et al. 2019)."""

    name: Literal["mos_plif"] = "mos_plif"
    knots: TwoOrMore = 1_000_000
    learning_rate: PositiveFloat = 0.02


class MonotoneNnConfig(Frozen):
    """f(x) = sum_i v_i sigmoid(u_i x + b_i) + b, with all u_i, v_i >= 0."""

    name: Literal["monotone_nn"] = "monotone_nn"
    units: PositiveInt = 16


class CustomConfig(Frozen):
    """A user's own output layer: a class, identified by its file's content."""

    name: Literal["custom"] = "custom"
    layer: str
    """Name of an `OutputLayer` class, called with a `LayerShape` and `settings`."""
    sha256: Sha256
    settings: dict[str, float | int | str | bool | None] = {}

    @classmethod
    def of(cls, layer: type, /, **settings: float | str | bool | None) -> Self:
        """Return the config of a class with settings, and register the class and its file.

        Raises UserError if the class is not at the top level of its file, or if that file imports
        another file of its folder. Workers do not have the other file.
        """
        if getattr(sys.modules.get(layer.__module__), layer.__name__, None) is not layer:
            raise UserError(
                f"{layer.__qualname__} is not at the top level of its file: move it there"
            )
        code = register(sys.modules[layer.__module__])
        return cls(layer=layer.__name__, sha256=code.sha256, settings=settings)


OutputLayerConfig = Annotated[
    SoftmaxConfig
    | SigSoftmaxConfig
    | GssConfig
    | SoftcapConfig
    | LmsPlifConfig
    | LmsPlifFrozenConfig
    | MosConfig
    | MocConfig
    | MosPlifConfig
    | MonotoneNnConfig
    | CustomConfig,
    Field(discriminator="name"),
]


def layer_parameters(
    layer: OutputLayerConfig, *, vocabulary: int, embedding_width: int, context_width: int
) -> int:
    """Return a built-in layer's parameter count, without the V x d output weights."""
    count = vocabulary
    if isinstance(layer, LmsPlifConfig | MosPlifConfig):
        count += layer.knots
    if isinstance(layer, MonotoneNnConfig):
        count += 3 * layer.units
    if isinstance(layer, MixtureConfig):
        count += layer.mixtures * (context_width + embedding_width * (context_width + 1))
    return count


CPU_CHUNK_BYTES = 5 * 2**19
"""2.5 MiB of logits. They and their slopes fit in one core's share of the cache
(benchmarks/loss.py)."""
GPU_CHUNK_BYTES = 2**28
MAX_ROWS_BY_WIDTH = 256


def chunk_rows(vocabulary_size: int, width: int, element_size: int, device_type: str) -> int:
    """Return the number of rows per chunk of logits.

    A chunk fills `CPU_CHUNK_BYTES` or `GPU_CHUNK_BYTES`, but has at least min(`width`, 256) rows.
    """
    # With fewer rows, memory traffic of the V x D weight gradient exceeds that of the n x V chunk.
    budget = CPU_CHUNK_BYTES if device_type == "cpu" else GPU_CHUNK_BYTES
    return max(32, min(width, MAX_ROWS_BY_WIDTH), budget // (vocabulary_size * element_size))
