"""Rank against perplexity over a grid of Generalized SigSoftmax (AAAI 2021, Figs. 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, log, log1p
from typing import Any

from search_spaces.awd_lstm import awd_lstm
from search_spaces.study import Correlation, GridMap, PublishedCorrelation, RankOverTraining, Study
from trainables.config import CorpusConfig, GssConfig, LanguageTrialConfig, TrialConfig

C_VALUES = (-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0)
K_VALUES = (1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0)
WIKITEXT_2_K_VALUES = (1.5, 2.0, 2.5, 3.0)
QUICK_K_VALUES = (1.5, 2.0, 3.0)
RANKS = (
    "press_rank",
    *(f"effective_rank_{share}" for share in ("1e-3", "1e-4", "1e-5")),
    *("entropy_rank", "stable_rank"),
    *(f"kl_rank_{nats}" for nats in ("1e-1", "1e-2", "1e-3")),
)


def trials(corpus: CorpusConfig) -> Iterator[TrialConfig]:
    """Yield 72 trials, or 36 on WikiText-2."""
    for c in C_VALUES:
        for k in WIKITEXT_2_K_VALUES if corpus.name == "wikitext-2" else K_VALUES:
            yield awd_lstm(corpus, GssConfig(c=c, k=k))


def label(config: LanguageTrialConfig) -> str:
    """Return a name: "gss c=-1.5 k=2.5"."""
    layer = config.output_layer
    assert isinstance(layer, GssConfig)
    return f"gss c={layer.c:g} k={layer.k:g}"


def corner(trials: Sequence[LanguageTrialConfig]) -> list[LanguageTrialConfig]:
    """Return the four corner cells of the grid."""
    layers = [layer for trial in trials if isinstance(layer := trial.output_layer, GssConfig)]
    ends_c, ends_k = (
        {f(values) for f in (min, max)}
        for values in zip(*((x.c, x.k) for x in layers), strict=True)
    )
    return [
        trial for trial, x in zip(trials, layers, strict=True) if x.c in ends_c and x.k in ends_k
    ]


def quick_trials(trials: Sequence[LanguageTrialConfig]) -> list[LanguageTrialConfig]:
    """Return three slopes k for every c: fewer cells, each with several seeds."""
    return [
        trial
        for trial in trials
        if isinstance(layer := trial.output_layer, GssConfig) and layer.k in QUICK_K_VALUES
    ]


# SigSoftmax, and the GSS that the paper chose for PTB and for WikiText-2.
BENDS = {"sigsoftmax": (0.0, 2.0), "gss, PTB": (-1.5, 2.5), "gss, WikiText-2": (-1.5, 3.0)}
X_STEPS, X_STEP = 120, 0.05


def piecewise(x: float, c: float, k: float) -> float:
    """Return PL(x; c, k), equation 2 of the paper."""
    return x if x > c else k * (x - c) + c


def smooth(x: float, c: float, k: float) -> float:
    """Return the smooth form of PL(x; c, k), equation 3 of the paper."""
    softplus = max(x - c, 0.0) + log1p(exp(-abs(x - c)))
    return k * (x - c) + c - (k - 1) * softplus


def bends_and_their_smooth_forms(results: Any) -> list[Any]:
    """Draw PL(x; c, k) and its smooth form by their formulas, as in Fig. 1 of the paper.

    PL has slope k up to x = c, and slope 1 above. The smooth form is less than PL at every x, by
    (k - 1) ln(1 + e^(-|x - c|)). So the distance is largest at x = c: (k - 1) ln 2.
    """
    xs = [i * X_STEP for i in range(-X_STEPS, X_STEPS + 1)]
    curves, table = type(results)({"x": xs}), []
    for name, (c, k) in BENDS.items():
        of_name = [[f(x, c, k) for x in xs] for f in (piecewise, smooth)]
        curves[f"PL, {name}"], curves[f"smooth, {name}"] = of_name
        distance, x = max((a - b, x) for a, b, x in zip(*of_name, xs, strict=True))
        at = {"function": name, "c": c, "k": k, "largest distance": distance, "at x": x}
        table.append(at | {"(k - 1) ln 2": (k - 1) * log(2)})
    styles = [f"C{i}{line}" for i in range(len(BENDS)) for line in ("-", "--")]
    figure = curves.plot(x="x", style=styles).figure
    figure.suptitle("PL(x; c, k) and its smooth form")
    largest = ", ".join(f"{row['largest distance']:.3f} ({row['function']})" for row in table)
    return [
        f"The smooth form is less than PL by at most {largest}, each at x = c.",
        figure,
        type(results)(table),
    ]


STUDY = Study(
    name="gss_grid",
    title="Rank and perplexity over the family of Generalized SigSoftmax",
    question="Is the rank of the log-P matrix correlated with the perplexity on the test set?",
    source="On the Softmax Bottleneck of Recurrent Language Models (AAAI 2021), Figs. 1 and 2",
    trials=trials,
    label=label,
    corner=corner,
    quick=quick_trials,
    seeds={"quick": 3},
    corpora=("ptb", "wikitext-2"),
    measurements=("perplexity@1", "spectrum@1", "centred_spectrum@1", "kl_rank@1"),
    analyses=(
        Correlation(
            definitions=RANKS,
            windows={"ptb": (56.6, 57.6), "wikitext-2": (64.0, 65.0)},
            published={
                "ptb": PublishedCorrelation(all_cells=0.48, windowed=0.24),
                "wikitext-2": PublishedCorrelation(all_cells=0.53, windowed=0.21),
            },
        ),
        GridMap(row="output_layer.c", column="output_layer.k"),
        bends_and_their_smooth_forms,
        RankOverTraining(),
    ),
)
