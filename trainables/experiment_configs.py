"""The kinds of trial that train no language model: small computations whose true answer is known."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveFloat, PositiveInt

from trainables.built_in_corpora import MARKOV_TOKENS, MARKOV_TYPES, markov_rank
from trainables.config import CorpusConfig, EvaluationConfig
from trainables.errors import UserError
from trainables.frozen import Frozen, Identified, NonNegative
from trainables.layer_configs import (
    LmsPlifConfig,
    LmsPlifFrozenConfig,
    MixtureConfig,
    MocConfig,
    MonotoneNnConfig,
    MosPlifConfig,
    OutputLayerConfig,
    SoftmaxConfig,
)

PASSES = 600.0
"""About how often a fit to known distributions goes through them."""


class ExperimentConfig(Identified):
    """A trial in one piece: it writes no checkpoint, and one that was killed starts anew."""

    schema_version: Literal[1] = 1
    kind: str

    @property
    def family(self) -> str:
        """What trials of about the same cost have in common."""
        return self.kind

    @property
    def parameters(self) -> int:
        """How many numbers are fitted."""
        return 0

    @property
    @abstractmethod
    def operations(self) -> float:
        """About how many floating-point operations the trial takes."""

    @property
    @abstractmethod
    def memory_bytes(self) -> float:
        """About how much memory its arrays take."""


class FitConfig(Frozen):
    """Adam, whose step falls to zero by half a cosine, then L-BFGS in rounds until a round brings next to nothing.

    Adam leaves the bad optima in which L-BFGS ends from a random start, above all with a piecewise function; L-BFGS
    takes it to where its rule of convergence holds.
    """

    adam_steps: Annotated[int, Field(ge=0)] = 400
    step_size: PositiveFloat = 0.1
    """Of Adam's first step."""
    round_iterations: PositiveInt = 20
    """Iterations of L-BFGS from one look at the rule to the next."""
    tolerance: NonNegative = 0.02
    """Converged: a round lowered the gap to the floor by less than this share of it."""
    gap_nats: NonNegative = 1e-4
    """Converged as well: the gap is below this."""
    most_rounds: PositiveInt = 50
    """A fit that ends here has not converged, and says so."""


class DirichletConfig(ExperimentConfig):
    """Fit N categorical targets drawn from Dir(alpha) over M outcomes (Ganea et al. 2019, the talk's synthetic
    experiment): each context has a vector of its own in R^d, and the outcomes' vectors are shared."""

    kind: Literal["dirichlet"] = "dirichlet"
    targets: PositiveInt = 1_000
    """N."""
    outcomes: PositiveInt = 1_000
    """M."""
    alpha: PositiveFloat
    width: PositiveInt
    """d."""
    output_layer: OutputLayerConfig
    fit: FitConfig = FitConfig()

    @property
    def family(self) -> str:
        """The output layer: each takes its own time for a pass over the targets."""
        return f"{self.kind} {self.output_layer.name}"

    @property
    def parameters(self) -> int:
        """Vectors of contexts and outcomes, and what the output layer owns."""
        layer, d = self.output_layer, self.width
        own = self.outcomes
        if isinstance(layer, LmsPlifConfig | MosPlifConfig):
            own += layer.knots
        if isinstance(layer, MonotoneNnConfig):
            own += 3 * layer.units
        if isinstance(layer, MixtureConfig):
            own += layer.mixtures * (d + d * (d + 1))
        return (self.targets + self.outcomes) * d + own

    @property
    def operations(self) -> float:
        """Of so many passes forward and backward as a fit takes, in operations of a language model's training: the
        matrix products here are larger and faster."""
        experts = self.output_layer.mixtures if _mixes_probabilities(self.output_layer) else 1  # type: ignore[union-attr]
        logits = float(self.targets * self.outcomes * experts)
        return PASSES * logits * (1.5 * self.width + _operations_per_logit(self.output_layer))

    @property
    def memory_bytes(self) -> float:
        """A few matrices of targets by outcomes."""
        return 4.0 * 30 * self.targets * self.outcomes


def _operations_per_logit(layer: OutputLayerConfig) -> float:
    """By the times of single passes at d = 10 and 100 (docs/ground-truth.md)."""
    match layer:
        case MonotoneNnConfig(units=units):
            return 64.0 * units
        case LmsPlifConfig() | LmsPlifFrozenConfig() | MosPlifConfig():
            return 200.0
        case SoftmaxConfig() | MocConfig():
            return 75.0
        case _:
            return 130.0


def _mixes_probabilities(layer: OutputLayerConfig) -> bool:
    return isinstance(layer, MixtureConfig) and not isinstance(layer, MocConfig)


class DenseLayerConfig(Frozen):
    """relu(W x)."""

    name: Literal["dense"] = "dense"


class ExpertsLayerConfig(Frozen):
    """sum_k g_k(x) relu(W_k x): see `trainables.mixture_of_experts`."""

    name: Literal["experts"] = "experts"
    experts: Annotated[int, Field(ge=2)]
    """K."""
    gates: Literal["softmax", "constant"] = "softmax"
    """Softmax over the experts of v_k x, or 1/K for each."""
    gate_for: Literal["expert", "unit"] = "expert"
    """Whether an expert has one gate or one for each of its output units; constant gates are the same in both."""


HiddenLayerConfig = Annotated[DenseLayerConfig | ExpertsLayerConfig, Field(discriminator="name")]


class LayerJacobianConfig(ExperimentConfig):
    """Singular values of the Jacobian of an untrained layer without biases, over random inputs (Orhan 2018)."""

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
        """Of the singular values, mostly; products of small matrices are slow for their number of operations."""
        experts = self.layer.experts if isinstance(self.layer, ExpertsLayerConfig) else 1
        return self.inputs * (15.0 * self.width**3 + 20.0 * experts * self.width**2)

    @property
    def memory_bytes(self) -> float:
        """Weights, and a few batches of 100 Jacobians."""
        experts = self.layer.experts if isinstance(self.layer, ExpertsLayerConfig) else 1
        return 8.0 * self.width**2 * (2 * experts + 100 * 6) + 8.0 * self.inputs * self.width


class LayerTaskConfig(ExperimentConfig):
    """Learn an invented function with one hidden layer: input, hidden layer of `width` units, linear output."""

    kind: Literal["layer_task"] = "layer_task"
    task: Literal["regions", "wide", "deep"]
    """The function: see `trainables.layer_tasks`."""
    layer: HiddenLayerConfig
    width: PositiveInt
    """Output units of the hidden layer, of each expert where it has experts."""
    input_width: PositiveInt = 32
    outputs: PositiveInt = 4
    train_examples: PositiveInt = 10_000
    valid_examples: PositiveInt = 5_000
    test_examples: PositiveInt = 10_000
    batch: PositiveInt = 100
    steps: PositiveInt = 5_000
    learning_rates: Annotated[tuple[PositiveFloat, ...], Field(min_length=1)] = (3e-3, 1e-2, 3e-2, 1e-1)
    """Each is tried; the one with the lowest validation error counts."""

    @property
    def family(self) -> str:
        """The layer: a mixture has more to do than a dense layer of as many parameters."""
        return f"{self.kind} {self.layer.name}"

    @property
    def parameters(self) -> int:
        """Weights of experts, gates and output, and the output's biases."""
        hidden = self.width * self.input_width
        if isinstance(self.layer, ExpertsLayerConfig):
            hidden *= self.layer.experts
            if self.layer.gates == "softmax":
                each = 1 if self.layer.gate_for == "expert" else self.width
                hidden += self.layer.experts * each * (self.input_width + 1)
        return hidden + self.outputs * (self.width + 1)

    @property
    def operations(self) -> float:
        """Forward and backward of all steps; most of a step's time is what calling it costs, not arithmetic."""
        return len(self.learning_rates) * self.steps * (6.0 * self.batch * self.parameters + 2e7)

    @property
    def memory_bytes(self) -> float:
        """The examples, and a batch's activations."""
        examples = self.train_examples + self.valid_examples + self.test_examples
        return 4.0 * 3 * examples * (self.input_width + self.outputs + 4 * self.width)


class PressNoiseConfig(ExperimentConfig):
    """Ranks of one log-P matrix of known rank, n x n, with Gaussian noise on it, and of what SVD round trips make of
    it (AAAI 2021, SM Algorithms 1 and 2)."""

    kind: Literal["press_noise"] = "press_noise"
    size: Annotated[int, Field(ge=20)] = 10_000
    """n: contexts (rows) and words (columns)."""
    rank: Annotated[int, Field(ge=3, le=20)] = 10
    """Of the matrix without noise: d + 2 of a softmax layer of width d."""
    noise_variance: NonNegative = 0.0
    """c: of each entry of the noise. Its standard deviation is the root of c."""
    round_trips: NonNegativeInt = 0
    """So many times: decompose, keep as many directions as the Press rank counts, multiply, decompose again."""
    precision: Literal["float32", "float64"] = "float64"
    """Of the matrix, of its decompositions and of the eps in the Press tolerance."""

    @property
    def operations(self) -> float:
        """A decomposition without its directions takes about 8/3 n^3, with them 22 n^3, much of it bound by memory."""
        return 2.0 * (8.0 / 3.0 + 22.0 * self.round_trips) * self.size**3

    @property
    def memory_bytes(self) -> float:
        """The matrix, its noise and what LAPACK works on; a round trip has two sides of directions besides."""
        return 8.0 * (6.0 if self.round_trips else 3.0) * self.size**2


class WordPairsConfig(ExperimentConfig):
    """Count the pairs of the 13 word-similarity benchmarks that a corpus' vocabulary lacks (AAAI 2021, SM Table 13)."""

    kind: Literal["word_pairs"] = "word_pairs"
    text: Literal["ptb", "wikitext-2"]
    """The corpus. Its files, and the benchmarks', must have the published SHA-256, so that its name says all of it."""

    @property
    def operations(self) -> float:
        """Reading a few megabytes."""
        return 1e10

    @property
    def memory_bytes(self) -> float:
        """The text and its words."""
        return 3e8


def _whole_language(corpus: CorpusConfig) -> CorpusConfig:
    try:
        rank = markov_rank(corpus.name)
    except UserError as error:
        raise ValueError(str(error)) from error
    if rank is None:
        raise ValueError(f"the true log P is known of generated languages only, and {corpus.name!r} is none")
    if corpus.vocabulary_limit is not None:
        raise ValueError(
            f"the true log P is known for the whole vocabulary only; leave vocabulary_limit None, not "
            f"{corpus.vocabulary_limit}"
        )
    return corpus


class TrueRankConfig(ExperimentConfig):
    """Measure the true log-P matrix of a generated language as the matrices of models trained on it are measured: one
    row after each test token."""

    kind: Literal["true_rank"] = "true_rank"
    corpus: Annotated[CorpusConfig, AfterValidator(_whole_language)]
    variant: Literal["float64", "float32", "noise"]
    """float64: the exact matrix, which float64 holds without rounding. float32: every value rounded to float32. noise:
    every value times 1 + eps g, eps of float32 and g standard normal, drawn anew for each place of the matrix."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """Which rows, and which test tokens are predicted: as those of a language model."""

    @property
    def operations(self) -> float:
        """Of the reduction to a triangle, and of its singular values."""
        rows = self.evaluation.test_tokens or MARKOV_TOKENS["test"]
        rows = min(rows, self.evaluation.rank_contexts or rows)
        return 2.0 * rows * MARKOV_TYPES**2 + 4.0 * MARKOV_TYPES**3

    @property
    def memory_bytes(self) -> float:
        """The language in three matrices and as lists, the triangle, and a block of rows in its two precisions."""
        return 8.0 * 8 * MARKOV_TYPES**2 + 3 * 2**26
