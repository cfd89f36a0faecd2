"""The lines of README.md, and of gss_grid in docs/results.md."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.docs_numbers.study_numbers import Lines, Studies, ranged, show, span, table
from orchestrator.report import title
from search_spaces.gss_grid import RANKS

RANK, PERPLEXITY = "press_rank", "test_perplexity"


def independent(row: Any) -> str:
    """Fisher's interval, which takes cells for independent points."""
    return f"[{show(row.independent_low, '+.2f')}, {show(row.independent_high, '+.2f')}]"


def significant(defined: Any) -> str:
    """How many definitions of rank have a significant correlation, and whether all of these are
    positive."""
    clear = defined[defined.p_adjusted < 0.05]
    positive = ", all positive" if (clear.pearson > 0).all() else ""
    return f"Holm's correction over all {len(defined)} leaves {len(clear)} significant{positive}"


def front_page(of: Studies) -> Lines:
    """The first page: softcaps, and the grid."""
    ranks = of("softcap").means[RANK]
    times = [show(ranks[f"softcap tanh {cap}"] / ranks["softmax"]) for cap in (30, 15)]
    yield f"multiplies the Press rank of log P by {times[0]} and by {times[1]}"
    yield f"softmax has {show(ranks['softmax'])} here"
    tables = of("gss_grid").tables
    means, over = tables["cells.csv"], tables["correlations.csv"].set_index("over")
    yield f"Left: {len(means)} settings of"
    better = means[means[PERPLEXITY] <= over.window_high["better half"] + 1e-9]
    rows = []
    for name, place, cells, printed in (
        ("all", "cells", means, "+0.48"),
        ("the better half", "better half", better, "+0.24"),
    ):
        spans = [span(cells[RANK]), span(cells[PERPLEXITY], ".1f")]
        rows.append(
            [name, *spans, show(over.n[place]), ranged(over.loc[place], "pearson"), printed]
        )
    yield table(
        "settings | Press ranks | test perplexities | n | Pearson r, ours [95%] | published r", rows
    )
    yield f"(r = {ranged(over.loc['seeds of one cell'], 'pearson')})"
    yield significant(tables["definitions.csv"])


def grid(of: Studies) -> Lines:
    """Correlations over the cells, and what the seeds do."""
    numbers = of("gss_grid")
    tables, trials = numbers.tables, numbers.trials
    over = tables["correlations.csv"].set_index("over")
    partial = tables["partial_correlations.csv"].set_index("left_out")
    means = tables["cells.csv"]
    yield f"`gss_grid` has {len(means)} cells"
    rows = [
        [
            name,
            ranged(over.loc[place], "pearson"),
            f"{over.pearson_p[place]:.2g}",
            independent(over.loc[place]),
        ]
        for name, place in (("as they are", "cells"), ("the better half", "better half"))
    ]
    without_seeds = ranged(over.loc["cells, without what their seeds add"], "pearson")
    rows.insert(1, ["without what the seeds add to the means", without_seeds, "", ""])
    c, k = "output_layer.c", "output_layer.k"
    for name, place in (("k", k), ("c", c), ("both", f"{c} {k}")):
        row = partial.loc[place]
        rows.append(
            [f"without the levels of {name}", ranged(row, "levels"), f"{row.levels_p:.2g}", ""]
        )
    yield table("over the cells | Pearson r [95%] | p | 95% as if independent", rows)
    defined = tables["definitions.csv"].set_index("x")
    rows = []
    for name in RANKS:
        centred = (
            ranged(defined.loc[f"centred_{name}"], "pearson")
            if f"centred_{name}" in defined.index
            else ""
        )
        row = defined.loc[name]
        rows.append([title(name), ranged(row, "pearson"), centred, ranged(row, "within")])
    yield table("rank | r over the cells [95%] | rows centred | between seeds of one cell", rows)
    yield f"r runs from {show(defined.pearson.min(), '+.2f')} to {show(defined.pearson.max(), '+.2f')}"
    yield significant(defined)
    by_seed = [
        show(of_seed[RANK].corr(of_seed[PERPLEXITY]), "+.2f")
        for _, of_seed in trials.groupby("seed")
    ]
    yield f"With one seed each, our {len(means)} give {', '.join(by_seed[:-1])} and {by_seed[-1]}"
    small = trials[trials[c] < 1].groupby("group").mean(numeric_only=True)
    yield f"the {len(small)} cells with c below 1 give {show(small[RANK].corr(small[PERPLEXITY]), '+.2f')}"
    yield f"Press ranks run from {span(means[RANK])}, perplexities from {span(means[PERPLEXITY], '.1f')}."
    seeds = tables["variance_components.csv"].set_index("metric")
    rank, perplexity = seeds.loc[RANK], seeds.loc[PERPLEXITY]
    yield (
        f"Between cells of one seed, the seed makes up {ranged(rank, 'seed_share', '.1%')} of the "
        f"variance of the rank "
        f"and {ranged(perplexity, 'seed_share', '.0%')} of that of the perplexity."
    )
    parts = show(rank.reliability, ".1%"), show(perplexity.reliability, ".0%")
    yield f"Over means of three seeds the cells' own part is {parts[0]} and {parts[1]}."
    common, between = np.sqrt([perplexity.variance_seed_in_all_cells, perplexity.variance_cells])
    yield f"(standard deviation {show(common, '.1f')}, compared with {show(between, '.1f')} between cells)"
    yield f"Between seeds of one cell, r = {ranged(over.loc['seeds of one cell'], 'pearson')}."
    half = tables["rank_over_training.csv"].query("rank == @RANK").drop_duplicates("group")
    earlier = (half.rank_half_epoch < half.log_perplexity_half_epoch).sum()
    yield f"In {earlier} of {len(half)} cells the rank makes half of its rise before"
