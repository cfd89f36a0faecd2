"""What Press' rank counts: SVD round trips and Gaussian noise on one log-P matrix (AAAI 2021, SM Tables 14 to 16)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from search_spaces.analyses import PressNoise
from search_spaces.published import rows
from search_spaces.study import Study
from trainables.config import CorpusConfig, PressNoiseConfig

SEED = 1
VARIANCES = tuple(float(row["noise_c"]) for row in rows("sm_table15_16_press_noise"))
FLOAT32_VARIANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
"""About the tolerance of float32, which is larger."""
ROUND_TRIPS = 3
"""That keep as many directions as the Press rank counts, so that only one trip's rounding is left beside them."""
FULL_ROUND_TRIPS = 6
"""That keep all directions, so that rounding adds up."""


def trials(corpus: CorpusConfig) -> Iterator[PressNoiseConfig]:
    """13 printed variances in float64, 7 in float32, and two kinds of round trips in both: 24 trials of one matrix."""
    del corpus
    for variance in VARIANCES:
        yield PressNoiseConfig(seed=SEED, noise_variance=variance)
    for variance in FLOAT32_VARIANCES:
        yield PressNoiseConfig(seed=SEED, noise_variance=variance, precision="float32")
    for precision in ("float32", "float64"):
        yield PressNoiseConfig(seed=SEED, round_trips=ROUND_TRIPS, precision=precision)
        yield PressNoiseConfig(seed=SEED, round_trips=FULL_ROUND_TRIPS, kept="all", precision=precision)


def label(config: PressNoiseConfig) -> str:
    """ "noise c=1e-20 float64", "round trips 3 float32", "round trips 6 float32, all directions"."""
    parts = [f"round trips {config.round_trips}"] if config.round_trips else []
    if config.noise_variance or not parts:
        parts.append(f"noise c={config.noise_variance:g}")
    return " ".join([*parts, config.precision]) + (", all directions" if config.kept == "all" else "")


def corner(configs: Sequence[PressNoiseConfig]) -> Sequence[PressNoiseConfig]:
    """Noise about the tolerance of a small matrix, in both precisions, and round trips."""
    chosen = {("float64", 1e-20), ("float64", 1e-25), ("float64", 1e-26), ("float32", 1e-5)}
    return [config for config in configs if config.round_trips or (config.precision, config.noise_variance) in chosen]


STUDY = Study(
    name="press_robustness",
    title="What Press' rank counts",
    question="How much noise does it take to change the rank of a log-P matrix, by Press' rank and by effective rank?",
    source="On the Softmax Bottleneck of Recurrent Language Models (AAAI 2021), SM Algorithms 1 and 2, Tables 14 to 16",
    trials=trials,
    label=label,
    reads_text=False,
    trains=False,
    measurements=("press_noise@1",),
    analyses=(PressNoise(),),
    corner=corner,
    deviations=(
        "The text of the supplement was not at hand, only the numbers of its Tables 15 and 16. What its algorithms do "
        "is taken from a summary: round trips through the SVD, and Gaussian noise on a matrix of rank 10.",
        "That c is the variance of the noise is read off the printed ranks: they fall short of 10,000 by 101 and 319 "
        "at 1e-20 and 1e-21, a factor of \N{SQUARE ROOT}10 and not 10. That the matrix is square is too: the noise of "
        "one with more rows has no singular values near zero, and its ranks would fall at once. That its precision is "
        "float64 is assumed.",
        "The matrix is a softmax layer's log-P matrix of random weights, of width 8 and so of rank 10, not the "
        "supplement's. Table 14 is not at hand, so the round trips have nothing printed beside them.",
        "A round trip is read as one that keeps as many directions as the "
        "Press rank counts, which all but decides that the rank does not move; so round trips that keep all "
        "directions are made besides. What those add is rounding, which is another on each matrix and with each number "
        "of threads; here it is that of one matrix, decomposed by one thread.",
    ),
)
