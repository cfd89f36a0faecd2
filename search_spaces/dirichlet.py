"""Output layers fitted to distributions from a Dirichlet (Ganea et al., ICML 2019)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from search_spaces.analyses import Claim, Lines, Reach
from search_spaces.monotone_ranks import ranks_of_functions
from search_spaces.study import Study
from trainables.config import (
    CorpusConfig,
    DirichletConfig,
    GssConfig,
    LmsPlifConfig,
    MonotoneNnConfig,
    MosConfig,
    OutputLayerConfig,
    SigSoftmaxConfig,
    SoftmaxConfig,
)

ALPHAS = (0.01, 0.1, 1.0)
WIDTHS = (2, 5, 10, 20, 50, 100)
SEEDS = (1, 2, 3)
KNOTS, UNITS, MIXTURES = 1_000, 8, 3
LAYERS: tuple[OutputLayerConfig, ...] = (
    SoftmaxConfig(),
    SigSoftmaxConfig(),
    GssConfig(c=-1.5, k=2.5),
    LmsPlifConfig(knots=KNOTS),
    MosConfig(mixtures=MIXTURES, latent_dropout=0.0),
    MonotoneNnConfig(units=UNITS),
)
# The talk's network has at least 1,000 units. It takes minutes a fit at scale quick.
MANY_UNITS, MANY_UNITS_WIDTHS, MANY_UNITS_QUICK_WIDTH = 1_000, (2, 5, 10), 5
MODES, GAP = "modes_matched", "excess_cross_entropy"
# Largest width that the claims call small.
SMALL = 10


def trials(corpus: CorpusConfig) -> Iterator[DirichletConfig]:
    """Yield 333 fits."""
    del corpus
    many_units = MonotoneNnConfig(units=MANY_UNITS)
    settings = [
        *product(ALPHAS, WIDTHS, LAYERS),
        *product(ALPHAS[:1], MANY_UNITS_WIDTHS, [many_units]),
    ]
    for (alpha, width, layer), seed in product(settings, SEEDS):
        yield DirichletConfig(seed=seed, alpha=alpha, width=width, output_layer=layer)


def label(config: DirichletConfig) -> str:
    """Return a name: "softmax alpha=0.01 d=20 seed=1"."""
    layer = config.output_layer.name + f"-{MANY_UNITS}" * has_many_units(config)
    return f"{layer} alpha={config.alpha:g} d={config.width} seed={config.seed}"


def has_many_units(config: DirichletConfig) -> bool:
    """Return True for the network with as many units as the talk's."""
    return getattr(config.output_layer, "units", UNITS) == MANY_UNITS


def quick_trials(trials: Sequence[DirichletConfig]) -> list[DirichletConfig]:
    """Return all fits, except those of the large network at some widths."""
    return [
        trial
        for trial in trials
        if trial.width == MANY_UNITS_QUICK_WIDTH or not has_many_units(trial)
    ]


def corner(trials: Sequence[DirichletConfig]) -> list[DirichletConfig]:
    """Return two widths of softmax and LMS-PLIF, at one alpha and seed."""
    return [
        trial
        for trial in trials
        if (trial.alpha, trial.seed) == (ALPHAS[0], SEEDS[0])
        and trial.width in (2, 20)
        and trial.output_layer.name in ("softmax", "lms_plif")
    ]


def _claims() -> Iterator[Claim]:
    better_modes = "monotonic functions match more modes at small d than linear softmax"
    equal_results = "similar results for cross-entropy and other alphas"
    of_few_units = (
        (better_modes, MODES, ALPHAS[:1]),
        (equal_results, MODES, ALPHAS[1:]),
        (equal_results, GAP, ALPHAS),
    )
    of_many_units = ((better_modes, MODES, ALPHAS[:1]), (equal_results, GAP, ALPHAS[:1]))
    for layer, claims in (
        ("lms_plif", of_few_units),
        (f"monotone_nn {UNITS}", of_few_units),
        (f"monotone_nn {MANY_UNITS}", of_many_units),
    ):
        for text, metric, panels in claims:
            yield Claim(
                text=text,
                metric=metric,
                better=layer,
                than="softmax",
                panels=panels,
                x_up_to=SMALL,
                lower_is_better=metric == GAP,
            )


STUDY = Study(
    name="dirichlet",
    title="Output layers on known distributions",
    question=(
        "At which width can each output layer express given distributions, and which layer "
        "matches their modes first?"
    ),
    source="Breaking the Softmax Bottleneck via Learnable Monotonic Pointwise Non-linearities "
    "(ICML 2019), the talk's synthetic experiment",
    trials=trials,
    label=label,
    corner=corner,
    quick=quick_trials,
    reads_text=False,
    measurements=(),
    analyses=(
        Lines(
            x="width",
            by="output_layer",
            metrics=(MODES, GAP),
            panel="alpha",
            title="Modes matched and gap to the entropy",
            logarithmic_x=True,
            logarithmic_y=(GAP,),
            reaches=(Reach(metric=MODES, value=99.0), Reach(metric=GAP, value=0.1, at_most=True)),
            claims=tuple(_claims()),
            note=(
                "The talk shows this experiment in figures without numbers, so only the talk's "
                "words can be compared with these results. The gap is the mean KL divergence in "
                "nats: the mean cross-entropy minus the targets' mean entropy. The fit is the same "
                "for every layer. Adam takes 700 steps, with a step size that falls from 0.05 to "
                "0. Then L-BFGS runs at most 50 rounds of at most 20 iterations. It ends when a "
                "round lowers the gap by less than 2%, or to below 1e-4 nats. More steps would "
                "lower the gap, most of all for learned functions: a gap is the result of this "
                "fit, not the minimum."
            ),
        ),
        ranks_of_functions,
    ),
    deviations=(
        "The talk's text names neither the optimiser nor N, M and d. This project chose N = M = "
        "1,000 (300 at scale quick, 40 at scale smoke), the widths and the rule of convergence.",
        "The rule of convergence was chosen after a look at some results: fits of alpha = 0.01 "
        "with seeds 1 and 2, and all fits of a shorter rule (400 steps from 0.1). With the shorter "
        "rule, some layers had another order at d = 50.",
        f"LMS-PLIF has {KNOTS:,} intervals on [\N{MINUS SIGN}20, 20] instead of 100,000, because "
        "N = M = 1,000 gives a million logits. It starts as the identity, because fits from "
        "random slopes end in worse optima.",
        f"The monotone network has {UNITS} units. The talk's number, at least {MANY_UNITS:,}, runs "
        f"at alpha = {ALPHAS[0]} and d = {', '.join(map(str, MANY_UNITS_WIDTHS))} (scale quick: "
        f"d = {MANY_UNITS_QUICK_WIDTH}), because a fit takes minutes to hours.",
        f"MoS has {MIXTURES} mixtures without dropout. It has parameters beyond the free context "
        "vectors, and its contexts pass through a tanh. At equal d it is the larger model.",
        "A fit ends in a local optimum that depends on its start. A layer may be able to express "
        "more than its fit reached.",
    ),
)
