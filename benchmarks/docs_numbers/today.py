"""docs/today.md."""

from __future__ import annotations

import numpy as np

from benchmarks.docs_numbers.study_numbers import (
    MINUS,
    Lines,
    Studies,
    ranged,
    show,
    span,
    star,
    table,
)
from orchestrator.report import title

TRANSFORMER = '{"--model":"transformer"}'


def confounders(of: Studies) -> Lines:
    """What correlations are left without the settings."""
    numbers = of("confounders")
    lines, shares = (
        numbers.tables["confounding.csv"],
        numbers.tables["shares_of_settings.csv"].set_index(["metric", "setting"]),
    )
    lines = lines[lines.rho.notna()].astype({"rho": float, "holm_p": float})
    shapes = ("none", "lines", "levels", "pairs", "triples")
    metrics = list(dict.fromkeys(lines.metric))
    by_place = lines.set_index(["metric", "taken_away"])
    rows = [
        [
            title(m),
            *(
                ranged(by_place.loc[m, shape], "rho") + star(by_place.loc[m, shape])
                for shape in shapes
            ),
        ]
        for m in metrics
    ]
    yield table("metric | as it is | lines | levels | pairs of levels | triples of levels", rows)
    yield f"it is {span(numbers.trials.press_rank)}, softmax' bound d + 2, in all {len(numbers.trials)} trials"
    share = shares.adjusted_r2.astype(float)
    ranks = [share[metric, "training.epochs"] for metric in metrics if "rank" in metric]
    yield (
        f"The length of training alone accounts for "
        f"{show(share['test_perplexity', 'training.epochs'], '.0%')} of the "
        f"variance of log perplexity and for {span(np.array(ranks) * 100)}% of that of the ranks"
    )
    stars = {
        shape: sum(by_place.loc[metric, shape].holm_p < 0.05 for metric in metrics)
        for shape in shapes
    }
    yield f"{stars['levels']} of {len(metrics)} metrics keep a star without levels"
    yield f"{stars['pairs']} without pairs of levels, and {stars['triples']} without triples"
    together, of_rate = (
        share["test_perplexity", "all"],
        share["gradient_lost_share", "training.learning_rate"],
    )
    yield f"account for {show(together, '.1%')} of the variance of log perplexity"
    yield f"with the learning rate ({show(of_rate, '.0%')} of its variance)"


CAPS = {
    "softcap tanh 30": ", Gemma 2's",
    "softcap tanh 15": ", nanochat's",
    "softcap sigmoid 23": ", modded-nanogpt's",
}


def softcaps(of: Studies) -> Lines:
    """softcap."""
    numbers = of("softcap")
    means, tests = numbers.means, numbers.tests
    forms = {
        form: sorted((n for n in tests.index if form in n), key=lambda n: -float(n.split()[2]))
        for form in ("tanh", "sigmoid")
    }
    rows = []
    for name in ("softmax", *forms["tanh"], *forms["sigmoid"]):
        more = (
            ranged(tests.loc[name], "difference") + star(tests.loc[name])
            if name in tests.index
            else ""
        )
        ranks = [
            show(means.press_rank[name]),
            *(show(means[f"kl_rank_1e-{i}"][name], ".1f") for i in (2, 3)),
        ]
        rows.append(
            [name + CAPS.get(name, ""), show(means.test_perplexity[name], ".1f"), more, *ranks]
        )
    yield table(
        "layer | test perplexity | more than softmax by | Press rank | KL rank (0.01 nats) | KL "
        "rank (0.001 nats)",
        rows,
    )
    bound = means.press_rank["softmax"]
    yield f"off softmax' bound d + 2 = {show(bound)}, by tanh the more the smaller it is"
    times = [show(means.press_rank[f"softcap tanh {cap}"] / bound) for cap in (30, 15)]
    yield f"{times[0]} times at Gemma 2's cap, {times[1]} times at nanochat's"
    row = tests.loc["softcap tanh 15"]
    yield f"may lie between {show(row.difference_low, '+.2f')} and {show(row.difference_high, '+.2f')}"
    directions = means["kl_rank_1e-2"][[f"softcap tanh {cap}" for cap in (10, 15, 20, 30)]]
    yield f"{span(directions)} directions within 0.01 nats for every tanh from 10 up"
    kl = means["kl_at_rank_16"]
    off = [
        show(kl[name], ".4f")
        for name in ("softmax", "softcap tanh 30", "softcap tanh 15", "softcap tanh 5")
    ]
    yield f"With 16 directions softmax is off by {off[0]} nats, tanh 30 by {off[1]}, 15 by {off[2]}, 5 by {off[3]}"


def bent_afterwards(of: Studies) -> Lines:
    """Softmax that is capped after its training."""
    means = of("softcap").means
    bent = means.loc["softmax"]
    rows = [
        [
            str(cap),
            show(bent[f"bent tanh {cap} press_rank"]),
            show(means.press_rank[f"softcap tanh {cap}"]),
            show(bent[f"bent tanh {cap} kl_from_softmax"], ".2g"),
        ]
        for cap in (30, 15)
    ]
    yield table(
        "cap (tanh) | Press rank if capped after training | if trained with the cap | KL from "
        "softmax (nats)",
        rows,
    )


def trivial_language(of: Studies) -> Lines:
    """spam."""
    numbers = of("spam")
    x, by = "model.embedding_width", "output_layer.name"
    points = numbers.tables["thresholds.csv"].set_index([by, "V"])
    laws = numbers.tables["threshold_laws.csv"].set_index(by)
    yield f"{len(numbers.trials)} trials"
    sizes = (500, 1000, 2000, 4000)
    rows = []
    for layer, law in laws.iterrows():
        found = [points.loc[(str(layer), size), :] for size in sizes]
        widths = [
            ranged(row, x, ".1f") + star(row) if np.isfinite(row[x]) else "none trained"
            for row in found
        ]
        rows.append([str(layer), *widths, ranged(law, "b", ".2f")])
    yield table(" | ".join(["layer", *(f"V = {show(size)}" for size in sizes), "b"]), rows)
    first, last = (
        f"{ranged(points.loc['mos', size], 'ratio', '.2f')} times at V = {show(size)}"
        for size in (500, 4000)
    )
    yield f"The mixture needs {first} and {last}"
    ratios = points.loc["softcap"].ratio.astype(float).dropna()
    yield f"The softcap needs {span(ratios, '.1f')} times as much"
    yield f"The laws miss the interpolated widths by up to {laws.farthest_off.max() - 1:.0%}"
    width = points.loc["softmax"][x]
    slopes = [show(np.log2(width[2 * size] / width[size]), ".2f") for size in (500, 2000)]
    yield f"From V = 500 to 1,000 softmax' exponent is {slopes[0]}, from 2,000 to 4,000 it is {slopes[1]}"


def saturation(of: Studies) -> Lines:
    """Losses of narrow models, ranks, and the gradient that the head passes on."""
    numbers = of("saturation")
    held = numbers.tables["extrapolation.csv"]
    rows = [
        [
            show(row["model.width"]),
            show(row.mean_loss, ".3f"),
            ranged(row, "predicted", ".3f"),
            ranged(row, "difference", "+.3f"),
            show(row.detectable, ".2f"),
            f"{row.bonferroni_p:.2g}",
        ]
        for _, row in held.iterrows()
    ]
    yield table(
        "width | test loss | the law of the wider ones [95%] | difference [95%] | could be found | "
        "Bonferroni p",
        rows,
    )
    law = numbers.tables["extrapolation_law.csv"].iloc[0]
    yield f"Over all ten, E is {ranged(law, 'E', '.2f')} and b {ranged(law, 'b', '.2f')}."
    yield f"The tests find an excess of {span(held.detectable, '.2f')} nats, depending on the width"
    means = numbers.trials.groupby("model.width").mean(numeric_only=True)
    kl = [show(means["kl_rank_1e-2"][width]) for width in (8, 32, 96)]
    yield f"more slowly than the width: {kl[0]} at d = 8, {kl[1]} at 32, {kl[2]} at 96"
    widths = [8, 16, 32, 64, 96]
    lost, identity = means.gradient_norm_lost, np.sqrt(1 - means.index / 2000)
    rows = [
        ["gradient norm lost", *(show(lost[width], ".3f") for width in widths)],
        [
            f"√(1 {MINUS} d/V), V = 2,000",
            *(show(np.sqrt(1 - width / 2000), ".3f") for width in widths),
        ],
        [
            "share of the square out of reach",
            *(show(means.gradient_lost_share[width], ".3f") for width in widths),
        ],
        [
            "angle of gradient and step, degrees",
            *(show(means.gradient_angle_degrees[width], ".1f") for width in widths),
        ],
    ]
    yield table("width | " + " | ".join(map(str, widths)), rows)
    yield f"The head loses {span(lost * 100, '.1f')}% of the gradient's norm"
    yield f"It is also √(1 {MINUS} d/V) to within {show((lost - identity).abs().max(), '.4f')}."


def transformer_seeds(of: Studies) -> Lines:
    """seeds --model transformer."""
    numbers = of("seeds", TRANSFORMER)
    rows = []
    for name in numbers.means.test_perplexity.sort_values().index:
        more = (
            ranged(numbers.tests.loc[name], "difference") + star(numbers.tests.loc[name])
            if name != "softmax"
            else ""
        )
        ranks = [
            show(numbers.means[m][name], s)
            for m, s in (
                ("press_rank", ".0f"),
                ("entropy_rank", ".1f"),
                ("effective_rank_1e-3", ".1f"),
            )
        ]
        rows.append([str(name), numbers.spread(name), more, *ranks])
    yield table(
        "layer | test perplexity | more than softmax by | Press rank | entropy rank | effective "
        "rank (1e-3)",
        rows,
    )


def head_rank(of: Studies) -> Lines:
    """Heads of a given rank."""
    numbers = of("head_rank")
    factors = numbers.tables["factors.csv"].set_index(["output_layer", "kind"])
    kinds = ("language_model", "transformer")
    by_size = numbers.trials.groupby(["kind", "output_layer", "model.head_rank"]).mean(
        numeric_only=True
    )
    largest = {
        kind: numbers.trials["model.head_rank"][numbers.trials.kind == kind].max() for kind in kinds
    }
    rows = []
    for layer in ("softmax", "softcap tanh", "gss", "sigsoftmax", "lms_plif", "mos", "moc"):
        factor = [
            ranged(factors.loc[layer, kind], "factor", ".3f") + star(factors.loc[layer, kind])
            if layer != "softmax"
            else "1"
            for kind in kinds
        ]
        rows.append(
            [
                layer,
                *factor,
                *(
                    show(by_size.test_perplexity[kind, layer, largest[kind]], ".1f")
                    for kind in kinds
                ),
            ]
        )
    yield table(
        "layer | LSTM | Transformer | test perplexity at the largest r: LSTM | Transformer", rows
    )
    stars, below = (factors.holm_p < 0.05).sum(), (factors.factor < 1).sum()
    yield f"{stars} of {len(factors)} comparisons have a star, and {below} factors are below 1"
    bends = factors.loc[["softcap tanh", "gss", "sigsoftmax"]].xs("language_model", level="kind")
    yield f"worth a *lower* rank of the LSTM's head, by {span((1 - bends.factor) * 100)}%"
    most = [show(factors.factor_high.xs(kind, level="kind").max(), ".2f") for kind in kinds]
    yield f"The intervals reach up to {most[0]} for the LSTM and {most[1]} for the Transformer."
    ranks = by_size.press_rank
    plain, bent = (
        ranks[kinds[0], "softmax", 8],
        [ranks[kind, layer, 8] for kind in kinds for layer in bends.index],
    )
    yield f"A head of rank 8 has Press rank {show(plain)} without a bend and {span(bent)} with one."
    plain = [
        by_size.test_perplexity[kind, "softmax", size]
        for kind, size in ((kinds[0], 2), *largest.items())
    ]
    yield f"the LSTM's perplexity falls from {show(plain[0])} to {show(plain[1])}"
    yield f"fits {(factors.misfit_p < 0.05).sum()} of the {len(factors)} badly"
    sizes = numbers.tables["equal_ranks.csv"]
    yield f"At single sizes {(sizes.holm_p < 0.05).sum()} of the {len(sizes)} ratios differ from 1"
    kl = by_size["kl_rank_1e-2"]
    ends = [
        span(kl[kind, layer, size] for layer in ("softmax", *bends.index))
        for kind, size in ((kinds[0], 2), *largest.items())
    ]
    yield f"{ends[0]} at r = 2, {ends[1]} (LSTM) and {ends[2]} (Transformer) at the largest r"


def transformer_grid(of: Studies) -> Lines:
    """gss_grid --model transformer."""
    numbers = of("gss_grid", TRANSFORMER)
    over = numbers.tables["correlations.csv"].set_index("over")
    partial = numbers.tables["partial_correlations.csv"].set_index("left_out")
    c, k = "output_layer.c", "output_layer.k"
    rows = [
        (name, over.loc[place], "pearson")
        for name, place in (("cells", "cells"), ("the better half of them", "better half"))
    ]
    rows += [
        (f"cells, without {name}", partial.loc[place], "levels")
        for name, place in (("c", c), ("k", k), ("c and k", f"{c} {k}"))
    ]
    rows.append(("seeds of one cell", over.loc["seeds of one cell"], "pearson"))
    yield table("over | r", [[name, ranged(row, value)] for name, row, value in rows])
    cells, softmax = (
        numbers.tables["cells.csv"],
        of("seeds", TRANSFORMER).trials.query("`output_layer.name` == 'softmax'"),
    )
    bound = softmax.press_rank.max()
    yield f"The cells have a Press rank {span(cells.press_rank / bound)} times softmax' bound of {show(bound)}"
    same = softmax[softmax.seed.isin(numbers.trials.seed)].test_perplexity.mean()
    best = cells.test_perplexity.min()
    yield f"a perplexity of {show(best, '.2f')}, and softmax with the same three seeds {show(same, '.2f')}"


SECTIONS = (
    *(confounders, softcaps, bent_afterwards, trivial_language),
    *(saturation, transformer_seeds, head_rank, transformer_grid),
)
