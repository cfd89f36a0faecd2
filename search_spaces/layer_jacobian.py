"""Jacobians of relu layers and mixtures of experts (Orhan 2018, the blog post's two figures)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from search_spaces.study import GroupTable, JacobianSpectra, Study
from trainables.config import (
    CorpusConfig,
    DenseLayerConfig,
    ExpertsLayerConfig,
    HiddenLayerConfig,
    LayerJacobianConfig,
)

EXPERTS = (2, 4, 8, 16)
SEEDS = tuple(range(1, 11))
LAYERS: tuple[HiddenLayerConfig, ...] = (
    DenseLayerConfig(),
    *(ExpertsLayerConfig(experts=experts, gates="softmax") for experts in EXPERTS),
    *(ExpertsLayerConfig(experts=experts, gates="constant") for experts in EXPERTS),
)


def trials(corpus: CorpusConfig) -> Iterator[LayerJacobianConfig]:
    """Yield 90 trials, which read no text."""
    del corpus
    for layer in LAYERS:
        for seed in SEEDS:
            yield LayerJacobianConfig(seed=seed, layer=layer)


def layer_name(layer: HiddenLayerConfig) -> str:
    """Return a name such as "softmax gates K=4" or "dense"."""
    return (
        f"{layer.gates} gates K={layer.experts}"
        if isinstance(layer, ExpertsLayerConfig)
        else layer.name
    )


def label(config: LayerJacobianConfig) -> str:
    """Return a trial's name: its layer and seed."""
    return f"{layer_name(config.layer)} seed={config.seed}"


def corner(trials: Sequence[LayerJacobianConfig]) -> list[LayerJacobianConfig]:
    """Return two seeds of the dense layer and of four mixtures."""
    layers = (LAYERS[0], LAYERS[1], LAYERS[4], LAYERS[5], LAYERS[8])
    return [config for config in trials if config.seed in SEEDS[:2] and config.layer in layers]


STUDY = Study(
    name="layer_jacobian",
    title="Singular values of a layer's Jacobian",
    question="How many singular values of a relu layer's Jacobian vanish, and do experts with "
    "gates fix that?",
    source="Orhan (2018), The softmax bottleneck is a special case of a more general phenomenon "
    "(blog post), its two figures",
    trials=trials,
    label=label,
    corner=corner,
    reads_text=False,
    trains=False,
    measurements=("layer_jacobian@2",),
    analyses=(
        JacobianSpectra(benchmark="layer_gates"),
        GroupTable(
            metrics=(
                "zero_share",
                "vanishing_1e-6",
                "vanishing_1e-3",
                "vanishing_1e-2",
                "vanishing_1e-1",
                "mean_vanishing_1e-3",
            ),
            title="Share of the singular values that vanish",
        ),
        GroupTable(
            metrics=(
                "singular_share",
                "log10_condition",
                "log10_condition_nonzero",
                "log10_condition_excess",
                "entropy_rank",
                "stable_rank",
                "effective_rank_1e-3",
                "sigma_max",
                "input_spread",
            ),
            title="Condition and ranks",
        ),
    ),
    deviations=(
        "The post shows figures without numbers, so no number can be compared with ours. Its "
        "claims are written as rules here, and the report states which hold.",
        "The post does not print how many experts its lines have. Here they have 2, 4, 8 and 16. "
        "The released program, jacobian_moe_demo.py of github.com/eminorhan/mixture-of-experts, is "
        "set to 20.",
        'The post averages over "a bunch of inputs" of one layer; here ten layers are drawn.',
        "Inputs are standard normal, as in the post. The released program draws them uniformly "
        "from [0, 1): for that, use --set input_distribution=uniform.",
        "For any matrix, the condition number without the zeros grows with the number of nonzero "
        "rows. Conditioning is therefore judged by the excess over a Gaussian matrix with the same "
        "rows set to zero. The post does not make this comparison.",
        "The post's formula leaves open whether a gate is for an expert or for each of its units. "
        "Here it is for an expert, as in the author's released DenseMoE.py. As in that file, each "
        "gate's weights are Glorot-uniform for 128 inputs and 1 output.",
        "Not included: the post's convolutional mixture of experts, its non-local layer, and "
        "networks of several layers.",
    ),
)
