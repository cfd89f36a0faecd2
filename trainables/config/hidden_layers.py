"""Configs of hidden layers with and without experts."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from trainables.config.experiment import ExperimentConfig
from trainables.config.frozen import Frozen, TwoOrMore

PIXELS = 64
"""Pixels of an image, which is a square."""


class DenseLayerConfig(Frozen):
    """relu(W x)."""

    name: Literal["dense"] = "dense"
    experts: ClassVar[int] = 1
    gates: ClassVar[str] = "constant"
    gate_for: ClassVar[str] = "expert"


class ExpertsLayerConfig(Frozen):
    """Mixture of experts: sum_k g_k(x) relu(W_k x)."""

    name: Literal["experts"] = "experts"
    experts: TwoOrMore
    gates: Literal["softmax", "constant"] = "softmax"
    """`softmax` computes the K gates as softmax(v_1 x, ..., v_K x). `constant` sets each gate to
    1/K."""
    gate_for: Literal["expert", "unit"] = "expert"
    """An expert has one gate, or one gate for each of its output units."""


class ConvolutionLayerConfig(Frozen):
    """Mixture of 3 x 3 convolutions of an image: sum_k g_k(x) relu(W_k * x).

    With `softmax`, each filter of an expert has a gate, as in Orhan's program.
    """

    gate_for: ClassVar[str] = "unit"
    name: Literal["convolution"] = "convolution"
    experts: PositiveInt = 1
    gates: Literal["softmax", "constant"] = "constant"


class NonLocalLayerConfig(Frozen):
    """Gated sum over the pixels j of an image, at each pixel i: sum_j g_j(x_i) W x_j."""

    experts: ClassVar[int] = 1
    gate_for: ClassVar[str] = "unit"
    name: Literal["non_local"] = "non_local"
    gates: Literal["softmax", "constant"] = "softmax"
    """`softmax` is over j, of x_i V x_j. `constant` sets each gate to 1/64."""


_Trained = DenseLayerConfig | ExpertsLayerConfig | ConvolutionLayerConfig
HiddenLayerConfig = Annotated[_Trained | NonLocalLayerConfig, Field(discriminator="name")]


def _check_images(config: Any) -> Any:
    is_image = config.layer.name in ("convolution", "non_local")
    widths = [config.width] * is_image
    if is_image or getattr(config, "task", "") == "images":
        widths.append(getattr(config, "input_width", PIXELS))
    for width in widths:
        if width % PIXELS:
            raise ValueError(f"the width of images must be a multiple of {PIXELS}, not {width}")
    return config


class LayerJacobianConfig(ExperimentConfig):
    """Compute singular values of an untrained layer's Jacobian at random inputs (Orhan 2018).

    The layer has no biases.
    """

    schema_version: Literal[2] = 2
    kind: Literal["layer_jacobian"] = "layer_jacobian"
    layer: HiddenLayerConfig
    width: Annotated[int, Field(ge=4)] = 128
    """Width of input and output: 64 values per channel of an image."""
    depth: PositiveInt = 1
    """Number of such layers in a chain. The Jacobian is that of the chain."""
    inputs: PositiveInt = 1_000
    input_distribution: Literal["normal", "uniform"] = "normal"
    """Standard normal as in Orhan's post, or uniform on [0, 1) as in the post's program."""
    _check = model_validator(mode="after")(_check_images)

    @property
    def operations(self) -> float:
        """Return the approximate number of operations, most of them for singular values."""
        layer = 4.0 * self.width**3 + 20.0 * self.layer.experts * self.width**2
        return self.inputs * (26.0 * self.width**3 + self.depth * layer)

    @property
    def memory_bytes(self) -> float:
        """Return the bytes of weights and a few batches of 100 Jacobians."""
        return (
            8.0 * self.width**2 * (2 * self.depth * self.layer.experts + 100 * 8)
            + 8.0 * self.inputs * self.width
        )


class LayerTaskConfig(ExperimentConfig):
    """Learn an invented function with one hidden layer of `width` units and a linear output."""

    schema_version: Literal[2] = 2
    kind: Literal["layer_task"] = "layer_task"
    task: Literal["regions", "wide", "deep", "images"]
    """See `trainables.experiments.layer_task`."""
    layer: Annotated[_Trained, Field(discriminator="name")]
    width: PositiveInt
    """Output units of the hidden layer, or of each expert: 64 per filter of a convolution."""
    input_width: PositiveInt = 32
    outputs: PositiveInt = 4
    # With one example, targets would have no variance.
    train_examples: TwoOrMore = 10_000
    valid_examples: TwoOrMore = 5_000
    test_examples: TwoOrMore = 10_000
    batch: PositiveInt = 100
    steps: PositiveInt = 5_000
    learning_rates: Annotated[tuple[PositiveFloat, ...], Field(min_length=1)] = (
        3e-3,
        1e-2,
        3e-2,
        1e-1,
        3e-1,
    )
    """Rates to try; the trial keeps the one with the lowest validation error."""
    _check = model_validator(mode="after")(_check_images)

    @property
    def family(self) -> str:
        """Return kind and layer, because experts cost more per parameter than a dense layer."""
        return f"{self.kind} {self.layer.name}"

    @property
    def parameters(self) -> int:
        """Return the number of trained parameters."""
        units, inputs = self.width, self.input_width
        if isinstance(self.layer, ConvolutionLayerConfig):
            units, inputs = units // PIXELS, inputs // PIXELS * 9
        hidden = self.layer.experts * units * inputs
        if self.layer.gates == "softmax":
            gates = 1 if self.layer.gate_for == "expert" else units
            hidden += self.layer.experts * gates * (self.input_width + 1)
        return hidden + self.outputs * (self.width + 1)

    @property
    def operations(self) -> float:
        """Return the operations of all steps. The fixed cost of a step counts as 2e7 operations."""
        return len(self.learning_rates) * self.steps * (6.0 * self.batch * self.parameters + 2e7)

    @property
    def memory_bytes(self) -> float:
        """Return the approximate bytes of all examples."""
        examples = self.train_examples + self.valid_examples + self.test_examples
        return 4.0 * 3 * examples * (self.input_width + self.outputs + 4 * self.width)
