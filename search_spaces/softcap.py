"""Softcaps (bounded logits): rank of log P and perplexity by cap.

Known uses: 30 tanh(x / 30) in Gemma 2 (arXiv 2408.00118), 15 tanh(x / 15) in nanochat (Karpathy
2025), 23 sigmoid((x + 5) / 7.5) in modded-nanogpt.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from search_spaces.awd_lstm import awd_lstm
from search_spaces.study import (
    Comparison,
    Correlation,
    GroupTable,
    Lines,
    LossByRank,
    RankOverTraining,
    Study,
)
from trainables.config import (
    SOFTCAPS,
    AnyConfig,
    CorpusConfig,
    OutputLayerConfig,
    SoftcapConfig,
    SoftmaxConfig,
    TrialConfig,
    output_layer_of,
)

ENDS = (5.0, 30.0)
SEEDS = 5
PLAIN = "softmax"


def trials(corpus: CorpusConfig) -> Iterator[TrialConfig]:
    """Yield softmax and eleven softcaps with the papers' softmax settings."""
    layers: tuple[OutputLayerConfig, ...] = (SoftmaxConfig(), *SOFTCAPS.values())
    for layer in layers:
        yield awd_lstm(corpus, layer)


def label(config: AnyConfig) -> str:
    """Return a name: "softcap tanh 15"."""
    layer = output_layer_of(config)
    if not isinstance(layer, SoftcapConfig):
        return PLAIN
    return f"softcap {layer.form} {layer.cap:g}"


def corner(configs: Sequence[AnyConfig]) -> list[AnyConfig]:
    """Return softmax, and the smallest and largest cap of each form."""
    ends = {PLAIN, *(f"softcap {name}" for name, layer in SOFTCAPS.items() if layer.cap in ENDS)}
    return [config for config in configs if label(config) in ends]


BASELINES = {f"softcap {name}": PLAIN for name in SOFTCAPS}
METRICS = (
    "valid_perplexity",
    "test_perplexity",
    "press_rank",
    "entropy_rank",
    "kl_rank_1e-1",
    "kl_rank_1e-2",
    "kl_rank_1e-3",
)
FIGURE_METRICS = ("test_perplexity", "press_rank", "kl_rank_1e-2")
TRAINED_TITLES = {
    "press_rank": "Press rank, trained",
    "test_perplexity": "test perplexity, trained",
}
BENT_TITLES = {
    "press_rank": "Press rank, bent after",
    "test_perplexity": "test perplexity, bent after",
    "kl_from_softmax": "KL (nats)",
}
# Caps of nanochat, Gemma 2 and modded-nanogpt.
PUBLISHED = ("softcap tanh 15", "softcap tanh 30", "softcap sigmoid 23")


def softmax_bent_after_training(results: Any) -> list[Any]:
    """Compare a softmax that is bent only after training with models that are trained with a bend.

    Values are means over seeds. KL(P || Q) is in nats per context: P is the trained softmax, and Q
    is the same softmax after bending.
    """
    means = results.groupby("group").mean(numeric_only=True)
    softmax = means.to_dict("index").get(PLAIN, {})
    table = means.reindex(index=list(BASELINES), columns=list(TRAINED_TITLES)).rename(
        columns=TRAINED_TITLES
    )
    for name, title in BENT_TITLES.items():
        table[title] = [softmax.get(f"bent {bend} {name}") for bend in SOFTCAPS]
    table = table.dropna(subset=list(BENT_TITLES.values())).rename_axis("bend").reset_index()
    parts = [
        f"With {row['bend'].removeprefix('softcap ')}, the Press rank is then "
        f"{row[BENT_TITLES['press_rank']]:.0f} (KL from the unbent softmax: "
        f"{row[BENT_TITLES['kl_from_softmax']]:.2g} nats); after training with this bend, it is "
        f"{row[TRAINED_TITLES['press_rank']]:.0f}."
        for row in table.to_dict("records")
        if row["bend"] in PUBLISHED and math.isfinite(row[TRAINED_TITLES["press_rank"]])
    ]
    if table.empty:
        return ["No trained softmax has been bent yet."]
    if not parts:
        return [table]
    return [
        f"A trained softmax was bent without further training. {' '.join(parts)}",
        table,
    ]


STUDY = Study(
    name="softcap",
    title="Softcaps: bounded logits of today's models",
    question="Does bounding the logits change the rank of the log-P matrix, and the perplexity "
    "with it?",
    trials=trials,
    label=label,
    corner=corner,
    seeds={"quick": SEEDS, "small": SEEDS, "paper": SEEDS},
    measurements=("perplexity@1", "spectrum@1", "kl_rank@1", "bent_softmax@1"),
    analyses=(
        Lines(
            x="output_layer.cap",
            by="output_layer.form",
            metrics=FIGURE_METRICS,
            reference=PLAIN,
            title="Perplexity and ranks over the cap",
            logarithmic_y=("test_perplexity", "press_rank"),
            note=(
                "tanh: cap tanh(x / cap), Gemma 2's at 30 and nanochat's at 15. sigmoid: "
                "modded-nanogpt's 23 sigmoid((x + 5) / 7.5), with all three numbers in proportion "
                "at other caps. The sigmoid form therefore has half the range of the tanh form "
                "with the same cap, and a slope of at most 0.77. No source printed a rank. "
                "Lines whose names end in “after training” send the logits of a trained softmax "
                "through the same function, without further training."
            ),
            after={
                f"bent {name} ": (f"{layer.form} after training", layer.cap)
                for name, layer in SOFTCAPS.items()
            },
        ),
        *(Comparison(baselines=BASELINES, metric=metric) for metric in FIGURE_METRICS),
        softmax_bent_after_training,
        Correlation(),
        Correlation(x="kl_rank_1e-2"),
        GroupTable(metrics=METRICS, title="Perplexity and ranks by cap"),
        LossByRank(),
        RankOverTraining(),
    ),
    deviations=(
        "The sources cap the logits of Transformers that have no output bias. The models here have "
        "an output bias. At scale quick, it starts at the logarithms of the word frequencies, cut "
        "to the range of the cap.",
        "The sources tune a cap together with the rest of a model; here only the cap changes.",
    ),
)
