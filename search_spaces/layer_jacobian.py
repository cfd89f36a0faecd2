"""Jacobians of relu layers, mixtures of experts and non-local layers, and of chains of layers.

Source: the blog post of Orhan (2018). Its two figures show dense layers and their mixtures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from search_spaces.study import Comparison, GroupTable, JacobianSpectra, Study
from trainables.config import (
    ConvolutionLayerConfig,
    CorpusConfig,
    DenseLayerConfig,
    ExpertsLayerConfig,
    HiddenLayerConfig,
    LayerJacobianConfig,
    NonLocalLayerConfig,
)

EXPERTS = (2, 4, 8, 16)
SEEDS = tuple(range(1, 11))
LAYERS: tuple[HiddenLayerConfig, ...] = (
    DenseLayerConfig(),
    *(ExpertsLayerConfig(experts=experts, gates="softmax") for experts in EXPERTS),
    *(ExpertsLayerConfig(experts=experts, gates="constant") for experts in EXPERTS),
)
CHAINED = (LAYERS[0], LAYERS[2], LAYERS[6])
"""The dense layer, and four experts with either kind of gates."""
DEPTHS = (2, 4, 8)
CONVOLUTION_EXPERTS = (2, 4, 8)
IMAGE_LAYERS: tuple[HiddenLayerConfig, ...] = (
    ConvolutionLayerConfig(),
    *(ConvolutionLayerConfig(experts=k, gates="softmax") for k in CONVOLUTION_EXPERTS),
    *(ConvolutionLayerConfig(experts=k, gates="constant") for k in CONVOLUTION_EXPERTS),
    NonLocalLayerConfig(gates="constant"),
    NonLocalLayerConfig(gates="softmax"),
)
IMAGE_WIDTH = 3 * 8 * 8
GROWTH_METRICS = {
    "vanishing_1e-3": ("share of at most 1e-3 of the largest", 1),
    "entropy_rank": ("entropy rank", -1),
}
"""Title of a metric of degeneracy, and the sign of its change if the degeneracy grows."""


def trials(corpus: CorpusConfig) -> Iterator[LayerJacobianConfig]:
    """Yield 270 trials, which read no text: layers, chains of them, and layers of images."""
    del corpus
    for layer in LAYERS:
        for seed in SEEDS:
            yield LayerJacobianConfig(seed=seed, layer=layer)
    for layer in CHAINED:
        for depth in DEPTHS:
            for seed in SEEDS:
                yield LayerJacobianConfig(seed=seed, layer=layer, depth=depth)
    for layer in IMAGE_LAYERS:
        for seed in SEEDS:
            yield LayerJacobianConfig(seed=seed, layer=layer, width=IMAGE_WIDTH)


def layer_name(layer: HiddenLayerConfig) -> str:
    """Return a name such as "softmax gates K=4", "dense" or "convolution"."""
    if isinstance(layer, ExpertsLayerConfig):
        return f"{layer.gates} gates K={layer.experts}"
    if isinstance(layer, NonLocalLayerConfig):
        return f"non-local {layer.gates} gates"
    if layer.experts > 1:
        return f"convolution {layer.gates} gates K={layer.experts}"
    return layer.name


def label(config: LayerJacobianConfig) -> str:
    """Return a trial's name: its layer, depth above 1 and seed."""
    return f"{_group(config.layer, config.depth)} seed={config.seed}"


def _group(layer: HiddenLayerConfig, depth: int) -> str:
    return layer_name(layer) + (f" L={depth}" if depth > 1 else "")


def corner(trials: Sequence[LayerJacobianConfig]) -> list[LayerJacobianConfig]:
    """Return two seeds of the dense layer, four mixtures, three chains and four image layers."""
    layers = (LAYERS[0], LAYERS[1], LAYERS[4], LAYERS[5], LAYERS[8])
    image_layers = (*IMAGE_LAYERS[:2], *IMAGE_LAYERS[-2:])
    return [
        config
        for config in trials
        if config.seed in SEEDS[:2]
        and (config.depth == 2 or (config.depth == 1 and config.layer in layers + image_layers))
    ]


def _deeper() -> dict[str, str]:
    steps = list(pairwise((1, *DEPTHS)))
    return {_group(layer, b): _group(layer, a) for layer in CHAINED for a, b in steps}


def _at_equal_depth() -> dict[str, str]:
    dense, *mixtures = CHAINED
    return {_group(layer, depth): _group(dense, depth) for depth in DEPTHS for layer in mixtures}


def growth_with_depth(results: Any) -> list[Any]:
    """Growth of the degeneracy with depth, and whether gates slow it.

    A growth is the change of a metric from depth 1 to the largest depth. Seeds share no draws, so
    Welch's test compares the growth of each mixture with that of the dense layer. P values have
    Bonferroni's correction for the four tests. No test has fewer than three seeds.
    """
    from scipy.stats import ttest_ind

    dense, *mixtures = (layer_name(layer) for layer in CHAINED)
    layers = results["group"].str.replace(r" L=\d+$", "", regex=True)
    trials = results.assign(layer=layers)[layers.isin([dense, *mixtures])]
    parts: list[Any] = []
    for metric, (title, sign) in GROWTH_METRICS.items():
        values = trials.pivot_table(metric, ["layer", "seed"], "depth").dropna()
        depths = list(values.columns)
        growth = values[depths[-1]] - values[depths[0]]
        samples = {name: list(sample) for name, sample in growth.groupby("layer")}
        for name in mixtures:
            if min(len(samples.get(layer, ())) for layer in (dense, name)) < 3:
                continue
            test = ttest_ind(samples[name], samples[dense], equal_var=False)
            p = min(1.0, 4 * test.pvalue)
            low, high = test.confidence_interval()
            rate = "more slowly" if sign * test.statistic < 0 else "faster"
            words = f"grows {rate}" if p < 0.05 else "was not shown to grow at another rate"
            parts.append(
                f"{name}: from depth {depths[0]} to {depths[-1]}, the {title} changes by "
                f"{growth[name].mean():+.3f}, and by {growth[dense].mean():+.3f} in the dense "
                f"layer: the degeneracy {words} (difference {low:+.3f} to {high:+.3f}, "
                f"p = {p:.2g})."
            )
        means = values.groupby("layer").mean().reset_index()
        parts.append(means.rename(columns={"layer": title, **{L: f"L={L}" for L in depths}}))
    return parts


STUDY = Study(
    name="layer_jacobian",
    title="Singular values of a layer's Jacobian",
    question="How many singular values of a relu layer's Jacobian vanish, does depth make that "
    "worse, and do experts with gates fix it?",
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
        growth_with_depth,
        *(Comparison(baselines=_deeper(), metric=metric) for metric in GROWTH_METRICS),
        Comparison(baselines=_at_equal_depth(), metric="vanishing_1e-3"),
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
        'The post has no figure of chains, convolutions or non-local layers. "Degeneracy can '
        'increase sharply in deeper models" is tested here on chains of 2, 4 and 8 equal layers, '
        "with the Jacobian of the whole chain at inputs of the first layer.",
        "Layers of images have 8 x 8 pixels and 3 channels, and so have their outputs. Each of K "
        "3 x 3 convolutions is padded with zeros to the image's size, and its gates, one per "
        "filter, depend on the whole image, as in the released ConvolutionalMoE.py. Weights are "
        "Glorot-uniform here and normal in that file.",
        "The non-local layer is the post's: y_i = sum_j softmax_j(x_i V x_j) W x_j. The layer of "
        "the cited paper (Wang et al. 2018) also adds x_i, which is left out. Its baseline has "
        "constant gates: each pixel gets the mean over all pixels, so the rank is 3.",
        "Not included: networks with biases, pooling, dropout or normalization between layers, and "
        "Jacobians of trained layers. The post computes none.",
    ),
)
