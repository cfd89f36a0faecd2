"""Configs of hidden layers with and without experts."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from trainables.config.experiment import ExperimentConfig
from trainables.config.frozen import Frozen, TwoOrMore


class DenseLayerConfig(Frozen):
    """relu(W x)."""

    name: Literal["dense"] = "dense"
    experts: ClassVar[int] = 1


class ExpertsLayerConfig(Frozen):
    """Mixture of experts: sum_k g_k(x) relu(W_k x)."""

    name: Literal["experts"] = "experts"
    experts: TwoOrMore
    gates: Literal["softmax", "constant"] = "softmax"
    """`softmax` computes the K gates as softmax(v_1 x, ..., v_K x). `constant` sets each gate to
    1/K."""
    gate_for: Literal["expert", "unit"] = "expert"
    """An expert has one gate, or one gate for each of its output units."""


HiddenLayerConfig = Annotated[DenseLayerConfig | ExpertsLayerConfig, Field(discriminator="name")]


class LayerJacobianConfig(ExperimentConfig):
    """Compute singular values of an untrained layer's Jacobian at random inputs (Orhan 2018).

    The layer has no biases.
    """

    schema_version: Literal[2] = 2
    kind: Literal["layer_jacobian"] = "layer_jacobian"
    layer: HiddenLayerConfig
    width: Annotated[int, Field(ge=4)] = 128
    """Width of input and output."""
    inputs: PositiveInt = 1_000
    input_distribution: Literal["normal", "uniform"] = "normal"
    """Standard normal as in Orhan's post, or uniform on [0, 1) as in the post's program."""

    @property
    def operations(self) -> float:
        """Return the approximate number of operations, most of them for singular values."""
        return self.inputs * (30.0 * self.width**3 + 20.0 * self.layer.experts * self.width**2)

    @property
    def memory_bytes(self) -> float:
        """Return the bytes of weights and a few batches of 100 Jacobians."""
        return (
            8.0 * self.width**2 * (2 * self.layer.experts + 100 * 8)
            + 8.0 * self.inputs * self.width
        )


class LayerTaskConfig(ExperimentConfig):
    """Learn an invented function with one hidden layer of `width` units and a linear output."""

    schema_version: Literal[2] = 2
    kind: Literal["layer_task"] = "layer_task"
    task: Literal["regions", "wide", "deep"]
    """See `trainables.experiments.layer_task`."""
    layer: HiddenLayerConfig
    width: PositiveInt
    """Output units of the hidden layer, or of each expert."""
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

    @property
    def family(self) -> str:
        """Return kind and layer, because experts cost more per parameter than a dense layer."""
        return f"{self.kind} {self.layer.name}"

    @property
    def parameters(self) -> int:
        """Return the number of trained parameters."""
        hidden = self.layer.experts * self.width * self.input_width
        if isinstance(self.layer, ExpertsLayerConfig) and self.layer.gates == "softmax":
            gates = 1 if self.layer.gate_for == "expert" else self.width
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
