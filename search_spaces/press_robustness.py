"""Press' rank under noise and SVD round trips, on a log-P matrix of rank ten (AAAI 2021, SM 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from search_spaces.analyses import PressNoise
from search_spaces.published import rows
from search_spaces.study import Study
from trainables.config import CorpusConfig, PressNoiseConfig

SEED = 1
VARIANCES = tuple(float(row["noise_c"]) for row in rows("sm_table15_16_press_noise"))
# For 1,000 to 10,000 rows, the predicted Press rank falls from nearly full to ten.
FLOAT32_VARIANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
ROUND_TRIPS = len(rows("sm_table14_round_trips"))


def trials(corpus: CorpusConfig) -> Iterator[PressNoiseConfig]:
    """Yield 21 trials of one matrix, slowest first."""
    del corpus
    yield PressNoiseConfig(seed=SEED, round_trips=ROUND_TRIPS)
    for variance in VARIANCES:
        yield PressNoiseConfig(seed=SEED, noise_variance=variance)
    for variance in FLOAT32_VARIANCES:
        yield PressNoiseConfig(seed=SEED, noise_variance=variance, precision="float32")


def label(config: PressNoiseConfig) -> str:
    """Return a name such as "noise c=1e-20 float64"."""
    trips = config.round_trips
    change = f"round trips {trips}" if trips else f"noise c={config.noise_variance:g}"
    return f"{change} {config.precision}"


def corner(configs: Sequence[PressNoiseConfig]) -> Sequence[PressNoiseConfig]:
    """Return the trial of round trips, and those with noise near a small matrix's tolerance."""
    cases = {("float64", 1e-20), ("float64", 1e-26), ("float64", 1e-28), ("float32", 1e-8)}
    return [
        config
        for config in configs
        if config.round_trips or (config.precision, config.noise_variance) in cases
    ]


STUDY = Study(
    name="press_robustness",
    title="What Press' rank counts",
    question="How much noise changes the Press rank and the effective rank of a log-P matrix?",
    source="On the Softmax Bottleneck of Recurrent Language Models (AAAI 2021), SM Algorithms 1 "
    "and 2, Tables 14 to 16",
    trials=trials,
    label=label,
    reads_text=False,
    trains=False,
    measurements=("press_noise@2",),
    analyses=(PressNoise(),),
    corner=corner,
    deviations=(
        "The supplement takes the log-P matrix of a trained MoS over the first 10,000 test "
        "contexts of the Penn Treebank, with Press rank 8,933. This study computes a log-P matrix "
        "of rank 18 from a softmax layer of width 16 with random weights. Both are cut to their "
        "ten largest singular values.",
        "The cut spectrum is divided by its largest value, as in the paper's Fig. 7. The "
        "supplement's algorithms do not print this step, but the printed ranks follow from the "
        "printed noise only with this step.",
        "The supplement prints neither its precision nor its noise. Here the precision is "
        "float64, which the printed ranks imply, and float32 in a second table. The noise is one "
        "draw, scaled.",
        "Here, Algorithm 2 takes the singular values from a Gram matrix, after subtracting the ten "
        "strong directions. At 120 to 1,000 rows, its rank differs from that of a plain SVD by at "
        "most one.",
        "Table 14's error is taken as the sum of squared differences from the cut matrix, because "
        "its size fits the sum, not the mean. Algorithm 1 adds rounding of the LAPACK library, "
        "here numpy's OpenBLAS.",
    ),
)
