"""Hidden layers with and without experts: their Jacobians, and what they learn."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from trainables.config.experiment import ExperimentConfig
from trainables.config.frozen import Frozen


class DenseLayerConfig(Frozen):
    """relu(W x)."""

    name: Literal["dense"] = "dense"
    experts: ClassVar[int] = 1


class ExpertsLayerConfig(Frozen):
    """sum_k g_k(x) relu(W_k x): see `trainables.experiments.mixture_of_experts`."""

    name: Literal["experts"] = "experts"
    experts: Annotated[int, Field(ge=2)]
    """K."""
    gates: Literal["softmax", "constant"] = "softmax"
    """Softmax over the experts of v_k x, or 1/K for each."""
    gate_for: Literal["expert", "unit"] = "expert"
    """Whether an expert has one gate or one for each of its output units; constant gates are the
    same in both."""


Examples = Annotated[int, Field(ge=2)]
"""How many: the targets of one alone have no variance to measure errors by."""

HiddenLayerConfig = Annotated[DenseLayerConfig | ExpertsLayerConfig, Field(discriminator="name")]


class LayerJacobianConfig(ExperimentConfig):
    """Singular values of the Jacobian of an untrained layer without biases, over random inputs
    (Orhan 2018)."""

    schema_version: Literal[2] = 2
    """In which a Jacobian is measured beside a Gaussian matrix, and random streams are independent
    of each other."""
    kind: Literal["layer_jacobian"] = "layer_jacobian"
    layer: HiddenLayerConfig
    width: Annotated[int, Field(ge=4)] = 128
    """Of input and output."""
    inputs: PositiveInt = 1_000
    """How many inputs the singular values are averaged over."""
    input_distribution: Literal["normal", "uniform"] = "normal"
    """Standard normal as in the post, or uniform on [0, 1) as in the program released with it."""

    @property
    def operations(self) -> float:
        """Of the singular values, mostly; products of small matrices are slow for their number of
        operations."""
        return self.inputs * (30.0 * self.width**3 + 20.0 * self.layer.experts * self.width**2)

    @property
    def memory_bytes(self) -> float:
        """Weights, and a few batches of 100 Jacobians."""
        return (
            8.0 * self.width**2 * (2 * self.layer.experts + 100 * 8)
            + 8.0 * self.inputs * self.width
        )


class LayerTaskConfig(ExperimentConfig):
    """Learn an invented function with one hidden layer: input, hidden layer of `width` units,
    linear output."""

    schema_version: Literal[2] = 2
    """In which every stream of random numbers is independent of the others."""
    kind: Literal["layer_task"] = "layer_task"
    task: Literal["regions", "wide", "deep"]
    """The function: see `trainables.experiments.layer_task`."""
    layer: HiddenLayerConfig
    width: PositiveInt
    """Output units of the hidden layer, of each expert where it has experts."""
    input_width: PositiveInt = 32
    outputs: PositiveInt = 4
    train_examples: Examples = 10_000
    valid_examples: Examples = 5_000
    test_examples: Examples = 10_000
    batch: PositiveInt = 100
    steps: PositiveInt = 5_000
    learning_rates: Annotated[tuple[PositiveFloat, ...], Field(min_length=1)] = (
        3e-3,
        1e-2,
        3e-2,
        1e-1,
        3e-1,
    )
    """Each is tried; the one with the lowest validation error counts."""

    @property
    def family(self) -> str:
        """The layer: a mixture has more to do than a dense layer of as many parameters."""
        return f"{self.kind} {self.layer.name}"

    @property
    def parameters(self) -> int:
        """Weights of experts, gates and output, and the output's biases."""
        hidden = self.layer.experts * self.width * self.input_width
        if isinstance(self.layer, ExpertsLayerConfig) and self.layer.gates == "softmax":
            gates = 1 if self.layer.gate_for == "expert" else self.width
            hidden += self.layer.experts * gates * (self.input_width + 1)
        return hidden + self.outputs * (self.width + 1)

    @property
    def operations(self) -> float:
        """Forward and backward of all steps; most of a step's time is what calling it costs, not
        arithmetic."""
        return len(self.learning_rates) * self.steps * (6.0 * self.batch * self.parameters + 2e7)

    @property
    def memory_bytes(self) -> float:
        """The examples, and a batch's activations."""
        examples = self.train_examples + self.valid_examples + self.test_examples
        return 4.0 * 3 * examples * (self.input_width + self.outputs + 4 * self.width)
