"""Compare the tables of README.md, docs/results.md and docs/today.md with the reports of a storage.

    python docs/fill_tables.py results            # print what differs; exit status 1 if any
    python docs/fill_tables.py results --write    # replace them in the pages

A page's table is found by its head. Its numbers come from the CSV files of the reports of the
studies at scale quick on the Penn Treebank. Sentences that repeat a number are for a person to
check."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1]
MINUS = "\N{MINUS SIGN}"
RANK, PERPLEXITY = "press_rank", "test_perplexity"
LAYERS = ("softmax", "sigsoftmax", "gss", "lms_plif", "mos")
EFFECTIVE = {f"effective_rank_1e-{i}": f"effective rank (1e-{i})" for i in (3, 4, 5)}
KL = {f"kl_rank_1e-{i}": f"KL rank (1e-{i} nats)" for i in (1, 2, 3)}
RANKS = {
    RANK: "Press rank",
    **EFFECTIVE,
    "entropy_rank": "entropy rank",
    "stable_rank": "stable rank",
    **KL,
}
METRICS = {**KL, **EFFECTIVE, "entropy_rank": "entropy rank", "stable_rank": "stable rank",
           "gradient_lost_share": "gradient out of reach (share of its square)"}  # fmt: skip
CAPS = {"tanh 30": ", Gemma 2's", "tanh 15": ", nanochat's", "sigmoid 23": ", modded-nanogpt's"}
Rows = Iterator[Sequence[str]]


class Report:
    """The CSV files of one report."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        groups = {row.setting: row.group for row in self["configs"].itertuples()}
        trials = self["trials"].query("state == 'done'").copy()
        self.trials = trials.assign(group=trials.setting.map(groups))
        by_group = self.trials.groupby("group", sort=False)
        self.means, self.deviations = (
            by_group.mean(numeric_only=True),
            by_group.std(numeric_only=True),
        )

    def __getitem__(self, name: str) -> Any:
        return pd.read_csv(self._folder / f"{name}.csv")

    @property
    def tests(self) -> Any:
        """The comparisons of test perplexity, by group."""
        return self["tests"].set_index("group")

    def spread(self, group: str, metric: str = PERPLEXITY, spec: str = ",.1f") -> str:
        """Return mean and standard deviation over the trials of a group."""
        mean, deviation = self.means[metric][group], self.deviations[metric][group]
        return f"{show(mean, spec)} ± {show(deviation, spec)}"

    def more(self, group: str) -> str:
        """Return a group's difference to softmax, with its star."""
        if group not in self.tests.index:
            return ""
        return ranged(self.tests.loc[group], "difference") + star(self.tests.loc[group])


Reports = Callable[..., Report]
"""From a study's name, and its kind of model, to its report."""


def show(value: float, spec: str = ",.0f") -> str:
    """Format a number with a typographic minus sign."""
    return format(float(value), spec).replace("-", MINUS)


def ranged(row: Any, name: str, spec: str = "+.2f") -> str:
    """Format a value of a CSV file with its interval."""
    if pd.isna(row[f"{name}_low"]):
        return show(row[name], spec)
    low, high = (show(row[f"{name}_{end}"], spec) for end in ("low", "high"))
    return f"{show(row[name], spec)} [{low}, {high}]"


def star(row: Any) -> str:
    """Return " *" if Holm's correction leaves p < 0.05."""
    return " *" if pd.notna(row["holm_p"]) and row["holm_p"] < 0.05 else ""


def span(values: Any, spec: str = ",.0f") -> str:
    """Return the least and the greatest value."""
    least, greatest = show(min(values), spec), show(max(values), spec)
    return least if least == greatest else f"{least} to {greatest}"


def front_page(of: Reports) -> Rows:
    means, over = of("gss_grid")["cells"], of("gss_grid")["correlations"].set_index("over")
    better = means[means[PERPLEXITY] <= over.window_high["better half"] + 1e-9]
    for name, place, cells, printed in (
        ("all", "cells", means, "+0.48"),
        ("the better half", "better half", better, "+0.24"),
    ):
        spans = span(cells[RANK]), span(cells[PERPLEXITY], ".1f")
        yield name, *spans, show(over.n[place]), ranged(over.loc[place], "pearson"), printed


def grid(of: Reports) -> Rows:
    over = of("gss_grid")["correlations"].set_index("over")
    partial = of("gss_grid")["partial_correlations"].set_index("left_out")

    def cells(name: str, place: str) -> Sequence[str]:
        row = over.loc[place]
        low, high = show(row.independent_low, "+.2f"), show(row.independent_high, "+.2f")
        return name, ranged(row, "pearson"), f"{row.pearson_p:.2g}", f"[{low}, {high}]"

    yield cells("as they are", "cells")
    without = ranged(over.loc["cells, without what their seeds add"], "pearson")
    yield "without what the seeds add to the means", without, "", ""
    yield cells("the better half", "better half")
    c, k = "output_layer.c", "output_layer.k"
    for name, place in (("k", k), ("c", c), ("both", f"{c} {k}")):
        row = partial.loc[place]
        yield f"without the levels of {name}", ranged(row, "levels"), f"{row.levels_p:.2g}", ""


def definitions(of: Reports) -> Rows:
    defined = of("gss_grid")["definitions"].set_index("x")
    for name, title in RANKS.items():
        row, centred = defined.loc[name], ""
        if f"centred_{name}" in defined.index:
            centred = ranged(defined.loc[f"centred_{name}"], "pearson")
        yield title, ranged(row, "pearson"), centred, ranged(row, "within")


def seeds(of: Reports) -> Rows:
    report = of("seeds")
    published = {"sigsoftmax": "0.392", "gss": "0.262", "mos": "2.0e-15", "lms_plif": "1.9e-05"}
    for name in ("softmax", *published):
        test: tuple[str, ...] = ("", "", "")
        if name in published:
            row = report.tests.loc[name]
            test = ranged(row, "difference"), f"{row.holm_p:.2g}", published[name]
        yield name, report.spread(name), *test, report.spread(name, RANK, ".0f")


def averaging(of: Reports) -> Rows:
    means = of("averaging").means
    for layer in (*LAYERS, "moc"):
        groups = [f"{layer} {rule}" for rule in ("ET-ASGD", "NT-ASGD")]
        perplexities = [show(means[PERPLEXITY][group], ".1f") for group in groups]
        yield layer, *perplexities, *(show(means[RANK][group]) for group in groups)


def by_group(study: str) -> Callable[[Reports], Rows]:
    def rows(of: Reports) -> Rows:
        means = of(study).means
        yield "test perplexity", *(show(value, ".1f") for value in means[PERPLEXITY])
        yield "Press rank", *(show(value) for value in means[RANK])

    return rows


def capacity(of: Reports) -> Rows:
    report = of("fair_capacity")
    for side, row in report["tuning"].set_index("side").iterrows():
        final = f"{side} final"
        parameters = f"{report.means.parameters[final] / 1000:.1f}k"
        ends = report.spread(final), report.spread(final, RANK, ".0f")
        yield str(side), parameters, show(row["validation perplexity"], ".1f"), *ends


def rank_metrics(of: Reports) -> Rows:
    means = of("rank_metrics").means
    specs = {RANK: ".0f"} | dict.fromkeys(EFFECTIVE, ".0f")
    specs |= {"entropy_rank": ".1f", "stable_rank": ".3f"}
    for layer in LAYERS:
        yield layer, *(show(means[metric][layer], spec) for metric, spec in specs.items())


def word_similarity(of: Reports) -> Rows:
    for name, rho in of("word_similarity")["word_similarity"].groupby("benchmark"):
        pairs = rho.pairs.iloc[0]
        if pairs >= 100:
            chance = show(2 / np.sqrt(pairs), ".2f")
            yield str(name), show(pairs), span(rho.rho.astype(float), "+.2f"), chance


def cost(of: Reports) -> Rows:
    for name, row in of("plif_lm").means.iterrows():
        yield str(name), show(row.parameters), show(row[PERPLEXITY], ".1f"), show(row[RANK])


def confounders(of: Reports) -> Rows:
    lines = of("confounders")["confounding"].set_index(["metric", "taken_away"])
    for metric, title in METRICS.items():
        taken = [lines.loc[metric, s] for s in ("none", "lines", "levels", "pairs", "triples")]
        yield title, *(ranged(row, "rho") + star(row) for row in taken)


def softcaps(of: Reports) -> Rows:
    report = of("softcap")
    means = report.means
    forms = [
        sorted((name for name in means.index if form in name), key=lambda n: -float(n.split()[2]))
        for form in ("tanh", "sigmoid")
    ]
    for name in ("softmax", *forms[0], *forms[1]):
        ranks = [show(means[RANK][name])]
        ranks += [show(means[f"kl_rank_1e-{i}"][name], ".1f") for i in (2, 3)]
        layer = name + CAPS.get(name.removeprefix("softcap "), "")
        yield layer, show(means[PERPLEXITY][name], ".1f"), report.more(name), *ranks


def bent_afterwards(of: Reports) -> Rows:
    means = of("softcap").means
    bent = means.loc["softmax"]
    for cap in (30, 15):
        after, kl = bent[f"bent tanh {cap} press_rank"], bent[f"bent tanh {cap} kl_from_softmax"]
        yield str(cap), show(after), show(means[RANK][f"softcap tanh {cap}"]), show(kl, ".2g")


def trivial_language(of: Reports) -> Rows:
    x, by = "model.embedding_width", "output_layer.name"
    points = of("spam")["thresholds"].set_index([by, "V"])
    for layer, law in of("spam")["threshold_laws"].set_index(by).iterrows():
        widths = [points.loc[(str(layer), size), :] for size in (500, 1000, 2000, 4000)]
        cells = [
            ranged(row, x, ".1f") + star(row) if np.isfinite(row[x]) else "none trained"
            for row in widths
        ]
        yield str(layer), *cells, ranged(law, "b", ".2f")


def saturation(of: Reports) -> Rows:
    for _, row in of("saturation")["extrapolation"].iterrows():
        predicted, difference = ranged(row, "predicted", ".3f"), ranged(row, "difference", "+.3f")
        found = show(row.detectable, ".2f"), f"{row.bonferroni_p:.2g}"
        yield show(row["model.width"]), show(row.mean_loss, ".3f"), predicted, difference, *found


def gradient(of: Reports) -> Rows:
    widths = [8, 16, 32, 64, 96]
    means = of("saturation").trials.groupby("model.width").mean(numeric_only=True).loc[widths]
    identity = np.sqrt(1 - means.index / 2000)
    yield "gradient norm lost", *(show(value, ".3f") for value in means.gradient_norm_lost)
    yield f"√(1 {MINUS} d/V), V = 2,000", *(show(value, ".3f") for value in identity)
    yield "share of the square out of reach", *(show(v, ".3f") for v in means.gradient_lost_share)
    angles = means.gradient_angle_degrees
    yield "angle of gradient and step, degrees", *(show(value, ".1f") for value in angles)


def transformer_seeds(of: Reports) -> Rows:
    report = of("seeds", "transformer")
    specs = {RANK: ".0f", "entropy_rank": ".1f", "effective_rank_1e-3": ".1f"}
    for name in map(str, report.means[PERPLEXITY].sort_values().index):
        ranks = [show(report.means[metric][name], spec) for metric, spec in specs.items()]
        yield name, report.spread(name), report.more(name), *ranks


def head_rank(of: Reports) -> Rows:
    report, kinds = of("head_rank"), ("LSTM", "Transformer")
    factors = report["factors"].set_index(["output_layer", "kind"])
    trials = report.trials.copy()
    trials[["kind", "layer"]] = trials.group.str.extract(r"^(\S+) (.*) r=")
    size = trials["model.head_rank"]
    largest = trials[size == size.groupby(trials.kind).transform("max")]
    ends = largest.groupby(["layer", "kind"])[PERPLEXITY].mean()
    for layer in ("softmax", "softcap tanh", "gss", "sigsoftmax", "lms_plif", "mos", "moc"):
        cells = ["1", "1"]
        if layer != "softmax":
            rows = [factors.loc[layer, kind] for kind in ("language_model", "transformer")]
            cells = [ranged(row, "factor", ".3f") + star(row) for row in rows]
        yield layer, *cells, *(show(ends[layer, kind], ".1f") for kind in kinds)


def transformer_grid(of: Reports) -> Rows:
    report = of("gss_grid", "transformer")
    over = report["correlations"].set_index("over")
    partial = report["partial_correlations"].set_index("left_out")
    c, k = "output_layer.c", "output_layer.k"
    for name, place in (("cells", "cells"), ("the better half of them", "better half")):
        yield name, ranged(over.loc[place], "pearson")
    for name, place in (("c", c), ("k", k), ("c and k", f"{c} {k}")):
        yield f"cells, without {name}", ranged(partial.loc[place], "levels")
    yield "seeds of one cell", ranged(over.loc["seeds of one cell"], "pearson")


TABLES: dict[str, dict[str, Callable[[Reports], Rows]]] = {
    "README.md": {"settings | Press ranks": front_page},
    "docs/results.md": {
        "over the cells | Pearson": grid,
        "rank | r over the cells": definitions,
        "layer | test perplexity | more": seeds,
        "layer | test perplexity: ET-ASGD": averaging,
        "K | 1 | 3": by_group("mos_k"),
        "latent dropout": by_group("mos_dropout"),
        "side | parameters": capacity,
        "model | Press": rank_metrics,
        "benchmark | pairs": word_similarity,
        "layer | parameters": cost,
    },
    "docs/today.md": {
        "metric | as it is": confounders,
        "layer | test perplexity | more than softmax by | Press rank | KL": softcaps,
        "cap (tanh)": bent_afterwards,
        "layer | V = 500": trivial_language,
        "width | test loss": saturation,
        "width | 8 | 16": gradient,
        "layer | test perplexity | more than softmax by | Press rank | entropy": transformer_seeds,
        "layer | LSTM | Transformer": head_rank,
        "over | r": transformer_grid,
    },
}
"""By page, the tables by how their heads begin."""


def filled(page: str, head: str, rows: Rows) -> str:
    """Return the page with these rows in the table whose head begins so."""
    lines = ["".join(f"| {cell} " if cell else "| " for cell in row) + "|\n" for row in rows]
    table = rf"^(\| {re.escape(head)}.*\n\|.*\n)(?:\|.*\n)*"
    return re.sub(table, lambda found: found[1] + "".join(lines), page, count=1, flags=re.MULTILINE)


def main() -> int:
    """Return 1 if a page differs from the reports."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("storage", type=Path, help="the folder with reports/")
    parser.add_argument("--write", action="store_true", help="replace the tables in the pages")
    options = parser.parse_args()

    @cache
    def of(study: str, model: str = "lstm") -> Report:
        for path in options.storage.glob(f"reports/{study}-quick-*/summary.json"):
            summary = json.loads(path.read_text())
            if summary["study"] == study and ("ransformer" in summary["variant"]) == (
                model != "lstm"
            ):
                return Report(path.parent)
        raise FileNotFoundError(f"no report of {study} ({model}) at scale quick")

    differ = False
    for name, tables in TABLES.items():
        page = before = (ROOT / name).read_text(encoding="utf-8")
        for head, rows in tables.items():
            try:
                changed = filled(page, head, rows(of))
            except (FileNotFoundError, KeyError) as error:
                print(f"{name}, table {head!r} cannot be filled: {error}")
                differ = True
                continue
            lines = [line for line in changed.splitlines() if line not in page.splitlines()]
            print(*(f"{name}: {line}" for line in lines), sep="\n", end="\n" if lines else "")
            page = changed
        differ |= page != before
        if options.write:
            (ROOT / name).write_text(page, encoding="utf-8")
    return int(differ)


if __name__ == "__main__":
    raise SystemExit(main())
