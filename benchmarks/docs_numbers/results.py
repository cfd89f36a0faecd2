"""docs/results.md."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.docs_numbers.gss_grid import grid
from benchmarks.docs_numbers.study_numbers import Lines, Studies, ranged, show, span, table

LAYERS = ("softmax", "sigsoftmax", "gss", "lms_plif", "mos")
LANGUAGE_STUDIES = (
    *(
        "gss_grid",
        "seeds",
        "averaging",
        "plif_frozen",
        "mos_k",
        "mos_dropout",
        "fair_capacity",
        "rank_metrics",
    ),
    *("qualitative", "word_similarity", "plif_lm"),
)


def overview(of: Studies) -> Lines:
    """How many models, and where they end."""
    trials = pd.concat([of(name).trials for name in LANGUAGE_STUDIES]).drop_duplicates("trial_id")
    yield f"{len(LANGUAGE_STUDIES)} of them train language models, {len(trials)} different ones"
    yield f"A softmax model ends at a test perplexity of {show(of('seeds').means.test_perplexity['softmax'])} here"
    yield f"All of these models learn: their test perplexities are {span(trials.test_perplexity)}"


def seeds(of: Studies) -> Lines:
    """Output layers over seeds, of LSTMs."""
    numbers = of("seeds")
    published = {"sigsoftmax": "0.392", "gss": "0.262", "mos": "2.0e-15", "lms_plif": "1.9e-05"}
    rows = [
        [
            "softmax",
            numbers.spread("softmax"),
            "",
            "",
            "",
            numbers.spread("softmax", "press_rank", ".0f"),
        ]
    ]
    for name, printed in published.items():
        row = numbers.tests.loc[name]
        ends = [numbers.spread(name), ranged(row, "difference"), f"{row.holm_p:.2g}"]
        rows.append([name, *ends, printed, numbers.spread(name, "press_rank", ".0f")])
    yield table(
        "layer | test perplexity | more than softmax by [95%] | Holm p | published p | Press rank",
        rows,
    )
    ranks = numbers.means.press_rank
    times = [show(ranks[name] / ranks["softmax"]) for name in ("sigsoftmax", "gss")]
    yield f"sigsoftmax and gss multiply the rank by {times[0]} and {times[1]}"
    detectable = numbers.tests.detectable_difference[["sigsoftmax", "gss"]].max()
    yield f"ten seeds could have shown {show(detectable, '.1f')} points"
    numbers = of("plif_frozen")
    row, ranks = numbers.tests.loc["lms_plif_frozen"], numbers.means.press_rank
    frozen, learned = numbers.spread("lms_plif_frozen"), numbers.spread("lms_plif")
    yield (
        f"slopes left as drawn end at {frozen}, learned ones at {learned}: "
        f"{ranged(row, 'difference', '+.1f')} points, "
        f"Holm p = {row.holm_p:.2g} (the paper: p = 0.826)."
    )
    yield f"The frozen ones have the higher rank ({show(ranks['lms_plif_frozen'])} and {show(ranks['lms_plif'])})."


def averaging(of: Studies) -> Lines:
    """When averaging starts."""
    means = of("averaging").means
    rules = ("ET-ASGD", "NT-ASGD")
    rows = [
        [layer]
        + [
            show(means[metric][f"{layer} {rule}"], spec)
            for metric, spec in PERPLEXITY_AND_RANK
            for rule in rules
        ]
        for layer in (*LAYERS, "moc")
    ]
    yield table("layer | test perplexity: ET-ASGD | NT-ASGD | Press rank: ET-ASGD | NT-ASGD", rows)
    by_rule = [
        np.array([means.test_perplexity[f"{layer} {rule}"] for layer in (*LAYERS, "moc")])
        for rule in rules
    ]
    yield f"NT-ASGD less ET-ASGD is {span(by_rule[1] - by_rule[0], '+.1f')} points (before rounding)."


def mixtures(of: Studies) -> Lines:
    """mos_k and mos_dropout."""
    numbers = of("mos_k")
    yield table(
        "K | " + " | ".join(name.rpartition("=")[2] for name in numbers.means.index),
        _by_group(numbers.means),
    )
    over = numbers.tables["correlations.csv"].set_index("over")
    yield f"Over six models r = {ranged(over.loc['cells'], 'pearson')}"
    means = of("mos_dropout").means
    yield table("latent dropout | 0.029 | 0.0145 | 0", _by_group(means))


PERPLEXITY_AND_RANK = (("test_perplexity", ".1f"), ("press_rank", ".0f"))


def _by_group(means: pd.DataFrame) -> list[list[str]]:
    names = ("test perplexity", "Press rank")
    return [
        [name, *(show(x, spec) for x in means[metric])]
        for name, (metric, spec) in zip(names, PERPLEXITY_AND_RANK, strict=True)
    ]


def capacity(of: Studies) -> Lines:
    """fair_capacity."""
    numbers, tests = of("fair_capacity"), of("fair_capacity").tests
    tuning = numbers.tables["tuning.csv"].set_index("side")
    yield f"{tuning['stopped early'].sum()} of {tuning['stage 2'].sum()} stopped early"
    rows = []
    for side, row in tuning.iterrows():
        final = f"{side} final"
        parameters = f"{numbers.means.parameters[final] / 1000:.1f}k"
        ends = [numbers.spread(final), numbers.spread(final, "press_rank", ".0f")]
        rows.append([str(side), parameters, show(row["validation perplexity"], ".1f"), *ends])
    yield table(
        "side | parameters | best validation perplexity in tuning | test perplexity, ten seeds | "
        "Press rank",
        rows,
    )
    mos = tests.loc["mos_dagger final"]
    yield (
        f"MoS is worse than the softmax of about as many parameters by "
        f"{ranged(mos, 'difference', '.1f')}, Holm p = "
        f"{mos.holm_p:.2g}."
    )
    yield f"The smaller softmax differs from MoS by {ranged(tests.loc['softmax_dagger final'], 'difference', '+.1f')}"


def definitions(of: Studies) -> Lines:
    """rank_metrics."""
    means = of("rank_metrics").means
    metrics = {
        "press_rank": ".0f",
        **{f"effective_rank_1e-{i}": ".0f" for i in (3, 4, 5)},
        "entropy_rank": ".1f",
        "stable_rank": ".3f",
    }
    rows = [
        [layer, *(show(means[metric][layer], spec) for metric, spec in metrics.items())]
        for layer in LAYERS
    ]
    yield table("model | Press | 1e-3 | 1e-4 | 1e-5 | entropy | stable", rows)
    weighed = means[[*metrics][1:]].to_numpy().ravel()
    yield f"The ranks that weigh directions are {span(weighed)}; Press' are {span(means.press_rank)}."


def words(of: Studies) -> Lines:
    """qualitative and word_similarity."""
    lines = of("qualitative").tables["predictions.csv"]
    lines = lines[lines.printed_in.isna() | (lines.printed_in == "")]
    known = lines[lines.next_word == lines.next_word_in_text]
    in_five = known[pd.to_numeric(known["rank"]) <= 5].groupby("model").context.nunique()
    in_five = in_five.reindex(lines.model.unique(), fill_value=0)
    contexts, of_known = lines.context.nunique(), known.context.nunique()
    yield f"of the {contexts} contexts, {contexts - of_known} have a true next word that the 2,000 words lack."
    yield f"The models have the true next word among their five likeliest in {span(in_five)} of the other {of_known}."
    rho = of("word_similarity").tables["word_similarity.csv"]
    pairs = rho.drop_duplicates("benchmark").set_index("benchmark").pairs
    many, none = (pairs >= 100).sum(), (pairs == 0).sum()
    yield f"of {len(pairs)} benchmarks, {many} have 100 or more pairs that are known, and {none} have none."
    by_name = rho.assign(rho=rho.rho.astype(float)).groupby("benchmark").rho
    rows = [
        [str(name), show(n), span(by_name.get_group(name), "+.2f"), show(2 / np.sqrt(n), ".2f")]
        for name, n in pairs[pairs >= 100].items()
    ]
    yield table(
        "benchmark | pairs | Spearman's r, least to greatest of the six models | 2/√n", rows
    )


def cost(of: Studies) -> Lines:
    """plif_lm."""
    means = of("plif_lm").means
    rows = [
        [str(name), show(row.parameters), show(row.test_perplexity, ".1f"), show(row.press_rank)]
        for name, row in means.iterrows()
    ]
    yield table("layer | parameters | test perplexity | Press rank", rows)


SECTIONS = (overview, grid, seeds, averaging, mixtures, capacity, definitions, words, cost)
