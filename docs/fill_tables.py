"""Compare the tables of README.md, docs/results.md and docs/today.md with the reports of a storage.

    python docs/fill_tables.py results            # print differences; exit status 1 if any
    python docs/fill_tables.py results --write    # write them to the pages

The storage needs reports at scale quick on ptb: `all`, `gss_grid --all-trials`, and `gss_grid` and
`seeds` with `--model transformer`. Sentences
that repeat a number must be checked by hand."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser, RawTextHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis import BETTER_HALF, BETWEEN, CELLS, WITHIN
from orchestrator.report import title

ROOT = Path(__file__).parents[1]
MINUS = "\N{MINUS SIGN}"
RANK, PERPLEXITY = "press_rank", "test_perplexity"
LAYERS = ("softmax", "sigsoftmax", "gss", "lms_plif", "mos")
EFFECTIVE = tuple(f"effective_rank_1e-{i}" for i in (3, 4, 5))
KL = tuple(f"kl_rank_1e-{i}" for i in (1, 2, 3))
SPECTRAL = (*EFFECTIVE, "entropy_rank", "stable_rank")
CAPS = {"tanh 30": ", Gemma 2's", "tanh 15": ", nanochat's", "sigmoid 23": ", modded-nanogpt's"}
C, K = "output_layer.c", "output_layer.k"
Rows = Iterator[Sequence[str]]


class Report:
    """The CSV files of one report."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        configs = self["configs"]
        groups = dict(zip(configs.setting, configs.group, strict=True))
        trials = self["trials"].query("state == 'done'").copy()
        self.trials = trials.assign(group=trials.setting.map(groups))
        groups = self.trials.groupby("group", sort=False)
        self.means, self.deviations = groups.mean(numeric_only=True), groups.std(numeric_only=True)

    def __getitem__(self, name: str) -> Any:
        return pd.read_csv(self._folder / f"{name}.csv")

    def spread(self, group: str, metric: str = PERPLEXITY, spec: str = ",.1f") -> str:
        """Return mean and standard deviation over a group's trials."""
        mean, deviation = self.means[metric][group], self.deviations[metric][group]
        return f"{show(mean, spec)} ± {show(deviation, spec)}"

    def difference(self, group: str) -> str:
        """Return a group's difference to softmax, with a star if it is significant."""
        tests = self["tests"].set_index("group")
        if group not in tests.index:
            return ""
        return interval(tests.loc[group], "difference") + star(tests.loc[group])


Reports = Callable[..., Report]  # takes a study's name and the settings of its report


def show(value: float, spec: str = ",.0f") -> str:
    return format(float(value), spec).replace("-", MINUS)


def show_all(values: Any, spec: str = ",.0f") -> list[str]:
    return [show(value, spec) for value in values]


def interval(row: Any, name: str, spec: str = "+.2f") -> str:
    """Format a value of a CSV file with its interval."""
    if pd.isna(row[f"{name}_low"]):
        return show(row[name], spec)
    low, high = show_all((row[f"{name}_low"], row[f"{name}_high"]), spec)
    return f"{show(row[name], spec)} [{low}, {high}]"


def star(row: Any) -> str:
    """Return " *" if p < 0.05 after Holm's correction."""
    return " *" if row["holm_p"] < 0.05 else ""


def span(values: Any, spec: str = ",.0f") -> str:
    least, greatest = show_all((min(values), max(values)), spec)
    return least if least == greatest else f"{least} to {greatest}"


def front_page(reports: Reports) -> Rows:
    report = reports("gss_grid")
    means, correlations = report["cells"], report["correlations"].set_index("over")
    better = means[means[PERPLEXITY] <= correlations.window_high[BETTER_HALF] + 1e-9]
    rows = ("all", CELLS, means, "+0.48"), ("the better half", BETTER_HALF, better, "+0.24")
    for name, key, cells, printed in rows:
        spans = span(cells[RANK]), span(cells[PERPLEXITY], ".1f")
        row = correlations.loc[key]
        yield name, *spans, show(row.n), interval(row, "pearson"), printed


def grid(reports: Reports) -> Rows:
    correlations = reports("gss_grid")["correlations"].set_index("over")
    partial = reports("gss_grid")["partial_correlations"].set_index("left_out")

    def cells(name: str, key: str) -> Sequence[str]:
        row = correlations.loc[key]
        low, high = show(row.independent_low, "+.2f"), show(row.independent_high, "+.2f")
        return name, interval(row, "pearson"), f"{row.pearson_p:.2g}", f"[{low}, {high}]"

    yield cells("as they are", CELLS)
    without = interval(correlations.loc[BETWEEN], "pearson")
    yield "without what the seeds add to the means", without, "", ""
    yield cells("the better half", BETTER_HALF)
    for name, key in (("k", K), ("c", C), ("both", f"{C} {K}")):
        row = partial.loc[key]
        yield f"without the levels of {name}", interval(row, "levels"), f"{row.levels_p:.2g}", ""


def definitions(reports: Reports) -> Rows:
    correlations = reports("gss_grid")["definitions"].set_index("x")
    for name in (RANK, *SPECTRAL, *KL):
        row, centred = correlations.loc[name], ""
        if f"centred_{name}" in correlations.index:
            centred = interval(correlations.loc[f"centred_{name}"], "pearson")
        yield title(name), interval(row, "pearson"), centred, interval(row, "within")


def seeds(reports: Reports) -> Rows:
    report = reports("seeds")
    published = {"sigsoftmax": "0.392", "gss": "0.262", "mos": "2.0e-15", "lms_plif": "1.9e-05"}
    for name in ("softmax", *published):
        test: tuple[str, ...] = ("", "", "")
        if name in published:
            row = report["tests"].set_index("group").loc[name]
            test = interval(row, "difference"), f"{row.holm_p:.2g}", published[name]
        yield name, report.spread(name), *test, report.spread(name, RANK, ".0f")


def averaging(reports: Reports) -> Rows:
    means = reports("averaging").means
    for layer in (*LAYERS, "moc"):
        ends = means.loc[[f"{layer} ET-ASGD", f"{layer} NT-ASGD"]]
        yield layer, *show_all(ends[PERPLEXITY], ".1f"), *show_all(ends[RANK])


def by_group(study: str) -> Callable[[Reports], Rows]:
    def rows(reports: Reports) -> Rows:
        means = reports(study).means
        yield "test perplexity", *show_all(means[PERPLEXITY], ".1f")
        yield "Press rank", *show_all(means[RANK])

    return rows


def capacity(reports: Reports) -> Rows:
    report = reports("fair_capacity")
    for side, row in report["tuning"].set_index("side").iterrows():
        final = f"{side} final"
        parameters = f"{report.means.parameters[final] / 1000:.1f}k"
        ends = report.spread(final), report.spread(final, RANK, ".0f")
        yield str(side), parameters, show(row["validation perplexity"], ".1f"), *ends


def rank_metrics(reports: Reports) -> Rows:
    means = reports("rank_metrics").means
    specs = dict.fromkeys((RANK, *EFFECTIVE), ".0f") | {"entropy_rank": ".1f", "stable_rank": ".3f"}
    for layer in LAYERS:
        yield layer, *(show(means[metric][layer], spec) for metric, spec in specs.items())


def word_similarity(reports: Reports) -> Rows:
    for name, rho in reports("word_similarity")["word_similarity"].groupby("benchmark"):
        pairs = rho.pairs.iloc[0]
        if pairs >= 100:
            rhos, chance = span(rho.rho.astype(float), "+.2f"), show(2 / np.sqrt(pairs), ".2f")
            yield str(name), show(pairs), rhos, chance


def cost(reports: Reports) -> Rows:
    for name, row in reports("plif_lm").means.iterrows():
        yield str(name), show(row.parameters), show(row[PERPLEXITY], ".1f"), show(row[RANK])


def confounders(reports: Reports) -> Rows:
    lines = reports("confounders")["confounding"].set_index(["metric", "taken_away"])
    for metric in (*KL, *SPECTRAL, "gradient_lost_share"):
        cells = [lines.loc[metric, s] for s in ("none", "lines", "levels", "pairs", "triples")]
        yield title(metric), *(interval(row, "rho") + star(row) for row in cells)


def softcaps(reports: Reports) -> Rows:
    report = reports("softcap")
    means = report.means
    capped = sorted(means.index.drop("softmax"), key=lambda name: -float(name.split()[2]))
    forms = [name for form in ("tanh", "sigmoid") for name in capped if form in name]
    for name in ("softmax", *forms):
        row, layer = means.loc[name], name + CAPS.get(name.removeprefix("softcap "), "")
        ranks = show(row[RANK]), *show_all(row[[*KL[1:]]], ".1f")
        yield layer, show(row[PERPLEXITY], ".1f"), report.difference(name), *ranks


def softcaps_after_training(reports: Reports) -> Rows:
    means = reports("softcap").means
    bent = means.loc["softmax"]
    for cap in (30, 15):
        after, kl = bent[f"bent tanh {cap} press_rank"], bent[f"bent tanh {cap} kl_from_softmax"]
        yield str(cap), show(after), show(means[RANK][f"softcap tanh {cap}"]), show(kl, ".2g")


def trivial_language(reports: Reports) -> Rows:
    x, layers = "model.embedding_width", "output_layer.name"
    points = reports("spam")["thresholds"].set_index([layers, "V"])
    for layer, law in reports("spam")["threshold_laws"].set_index(layers).iterrows():
        widths = [points.loc[(str(layer), size), :] for size in (500, 1000, 2000, 4000)]
        cells = [
            interval(row, x, ".1f") + star(row) if np.isfinite(row[x]) else "none trained"
            for row in widths
        ]
        yield str(layer), *cells, interval(law, "b", ".2f")


def saturation(reports: Reports) -> Rows:
    for _, row in reports("saturation")["extrapolation"].iterrows():
        losses = interval(row, "predicted", ".3f"), interval(row, "difference", "+.3f")
        tests = show(row.detectable, ".2f"), f"{row.bonferroni_p:.2g}"
        yield show(row["model.width"]), show(row.mean_loss, ".3f"), *losses, *tests


def gradient(reports: Reports) -> Rows:
    widths = [8, 16, 32, 64, 96]
    means = reports("saturation").trials.groupby("model.width").mean(numeric_only=True).loc[widths]
    yield "gradient norm lost", *show_all(means.gradient_norm_lost, ".3f")
    yield f"√(1 {MINUS} d/V), V = 2,000", *show_all(means.gradient_norm_lost_null, ".3f")
    yield "share of the square out of reach", *show_all(means.gradient_lost_share, ".3f")
    yield "angle of gradient and step, degrees", *show_all(means.gradient_angle_degrees, ".1f")


def transformer_seeds(reports: Reports) -> Rows:
    report = reports("seeds", "--model transformer")
    specs = {RANK: ".0f", "entropy_rank": ".1f", "effective_rank_1e-3": ".1f"}
    for name in map(str, report.means[PERPLEXITY].sort_values().index):
        ranks = [show(report.means[metric][name], spec) for metric, spec in specs.items()]
        yield name, report.spread(name), report.difference(name), *ranks


def head_rank(reports: Reports) -> Rows:
    report, kinds = reports("head_rank"), ("LSTM", "Transformer")
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
            cells = [interval(row, "factor", ".3f") + star(row) for row in rows]
        yield layer, *cells, *(show(ends[layer, kind], ".1f") for kind in kinds)


def transformer_grid(reports: Reports) -> Rows:
    report = reports("gss_grid", "--model transformer")
    correlations = report["correlations"].set_index("over")
    partial = report["partial_correlations"].set_index("left_out")
    for name, key in (("cells", CELLS), ("the better half of them", BETTER_HALF)):
        yield name, interval(correlations.loc[key], "pearson")
    for name, key in (("c", C), ("k", K), ("c and k", f"{C} {K}")):
        yield f"cells, without {name}", interval(partial.loc[key], "levels")
    yield "seeds of one cell", interval(correlations.loc[WITHIN], "pearson")


# Page -> start of a table's head -> its rows.
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
        "cap (tanh)": softcaps_after_training,
        "layer | V = 500": trivial_language,
        "width | test loss": saturation,
        "width | 8 | 16": gradient,
        "layer | test perplexity | more than softmax by | Press rank | entropy": transformer_seeds,
        "layer | LSTM | Transformer": head_rank,
        "over | r": transformer_grid,
    },
}


def fill_table(page: str, head: str, rows: Rows) -> str:
    lines = ["".join(f"| {cell} " if cell else "| " for cell in row) + "|\n" for row in rows]
    table = rf"^(\| {re.escape(head)}.*\n\|.*\n)(?:\|.*\n)*"
    return re.sub(table, lambda match: match[1] + "".join(lines), page, count=1, flags=re.MULTILINE)


def main() -> int:
    parser = ArgumentParser(description=__doc__, formatter_class=RawTextHelpFormatter)
    parser.add_argument("storage", type=Path, help="folder that holds reports/")
    parser.add_argument("--write", action="store_true", help="replace the tables in the pages")
    options = parser.parse_args()

    @cache
    def reports(study: str, settings: str = "") -> Report:
        for path in options.storage.glob(f"reports/{study}-quick-*/summary.json"):
            run = json.loads(path.read_text())
            if (run["study"], run["settings"], run["corpus"] or "PTB") == (study, settings, "PTB"):
                return Report(path.parent)
        raise FileNotFoundError(f"no report of {' '.join((study, settings))} (quick, PTB)")

    differ = False
    for name, tables in TABLES.items():
        page = original = (ROOT / name).read_text(encoding="utf-8")
        for head, rows in tables.items():
            try:
                page = fill_table(page, head, rows(reports))
            except (FileNotFoundError, KeyError) as error:
                print(f"{name}: cannot fill table {head!r}: {error}")
                differ = True
        for line in page.splitlines():
            if line not in original.splitlines():
                print(f"{name}: {line}")
        differ |= page != original
        if options.write:
            (ROOT / name).write_text(page, encoding="utf-8")
    return int(differ)


if __name__ == "__main__":
    raise SystemExit(main())
