"""Input-dependent gates, constant gates or a dense layer: benchmark that Orhan (2018) left open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from search_spaces.study import Comparison, Counts, GroupTable, Study
from trainables.config import (
    PIXELS,
    ConvolutionLayerConfig,
    CorpusConfig,
    DenseLayerConfig,
    ExpertsLayerConfig,
    HiddenLayerConfig,
    LayerTaskConfig,
)

LEARNING_RATES = (3e-3, 1e-2, 3e-2, 1e-1, 3e-1)
TASKS = ("regions", "wide", "deep")
SEEDS = tuple(range(1, 11))
# Width and kind of each layer. Each network has 32 inputs, 4 outputs and 3,172 parameters.
LAYERS: dict[str, tuple[int, HiddenLayerConfig]] = {
    "dense": (88, DenseLayerConfig()),
    "constant gates": (24, ExpertsLayerConfig(experts=4, gates="constant")),
    "softmax gates": (23, ExpertsLayerConfig(experts=4, gates="softmax")),
}
# Filters and kind of each layer. Each network has 192 inputs and 4 outputs, and 9,060, 8,994 and
# 9,052 parameters.
CONVOLUTIONS: dict[str, tuple[int, ConvolutionLayerConfig]] = {
    "convolution": (32, ConvolutionLayerConfig()),
    "constant gates": (29, ConvolutionLayerConfig(experts=2, gates="constant")),
    "softmax gates": (13, ConvolutionLayerConfig(experts=2, gates="softmax")),
}


def trials(corpus: CorpusConfig) -> Iterator[LayerTaskConfig]:
    """Yield 120 trials, which read no text."""
    del corpus
    for task in TASKS:
        for width, layer in LAYERS.values():
            for seed in SEEDS:
                yield LayerTaskConfig(
                    seed=seed, task=task, layer=layer, width=width, learning_rates=LEARNING_RATES
                )
    for filters, convolution in CONVOLUTIONS.values():
        for seed in SEEDS:
            yield LayerTaskConfig(
                seed=seed,
                task="images",
                layer=convolution,
                width=filters * PIXELS,
                input_width=3 * PIXELS,
                learning_rates=LEARNING_RATES,
            )


def label(config: LayerTaskConfig) -> str:
    """Return a name such as "regions: softmax gates seed=1"."""
    layer = f"{config.layer.gates} gates" if config.layer.experts > 1 else config.layer.name
    return f"{config.task}: {layer} seed={config.seed}"


def corner(trials: Sequence[LayerTaskConfig]) -> list[LayerTaskConfig]:
    """Return two seeds of each layer on two tasks."""
    tasks = ("regions", "images")
    return [config for config in trials if config.seed in SEEDS[:2] and config.task in tasks]


def _by_task(pairs: dict[str, str], *tasks: str) -> dict[str, str]:
    return {
        f"{task}: {layer}": f"{task}: {baseline}"
        for task in tasks
        for layer, baseline in pairs.items()
    }


STUDY = Study(
    name="layer_gates",
    title="Input-dependent gates, constant gates and no gates",
    question=(
        "At equal parameter counts, does a mixture of experts learn better than a dense layer? If "
        "so, must its gates depend on the input, or do constant gates, which also break the "
        "degeneracy, suffice?"
    ),
    source='the question that Orhan (2018) leaves open: "I haven\'t yet run detailed benchmarks"',
    trials=trials,
    label=label,
    corner=corner,
    reads_text=False,
    measurements=("layer_task@2",),
    analyses=(
        Comparison(
            baselines=_by_task(
                {"softmax gates": "constant gates", "constant gates": "dense"}, *TASKS
            ),
            metric="test_error_percent",
        ),
        Comparison(
            baselines=_by_task({"softmax gates": "dense"}, *TASKS), metric="test_error_percent"
        ),
        *(
            Comparison(baselines=_by_task(pairs, "images"), metric="test_error_percent")
            for pairs in (
                {"softmax gates": "constant gates", "constant gates": "convolution"},
                {"softmax gates": "convolution"},
            )
        ),
        GroupTable(
            metrics=(
                "parameters",
                "test_error_percent",
                "validation_error_percent",
                "train_error_percent",
            ),
            title="Errors by task and layer",
        ),
        Counts(metric="chosen_learning_rate", values=LEARNING_RATES),
    ),
    deviations=(
        "The post has no such benchmark. This is a small one on invented functions without noise: "
        "it shows which layer learns these functions, not which would be best on images or text.",
        "Errors are mean squared errors in percent of the targets' variance: the function itself "
        "has error 0, its mean has 100. The function of the task regions is built like a mixture "
        "with hard gates, that of wide like a dense layer, that of deep like neither.",
        "The released conv_moe_demo.py trains convolutional mixtures of two experts on CIFAR-10, "
        "with more parameters than the network without gates. CIFAR-10 is not included. Task "
        "images instead has invented images of 8 x 8 pixels and 3 channels with independent "
        "values. Its function has two layers of convolutions; the networks have one, and nearly "
        "equal parameter counts (9,060, 8,994 and 9,052) at two experts.",
        "Each seed draws a function, the examples, the weights and the batches. At a seed, all "
        "three layers share function, examples and batches. The tests pair equal seeds.",
        "Each trial trains at five learning rates and keeps the one with the lowest validation "
        "error. Experts have no biases, as in the post; gates have biases. Four experts with 4 "
        "outputs make the parameter counts exactly equal.",
        "The tests of input-dependent gates against dense are a separate family for Holm's "
        "correction.",
    ),
)
