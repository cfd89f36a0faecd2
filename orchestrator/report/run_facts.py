"""Facts of a run: values that all trials share, and ranges of those that differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from orchestrator.analysis import Environment, FlatResults, StudySummaryNumbers
from orchestrator.report import formats
from orchestrator.variants import Variant
from orchestrator.words import duration, is_number, some_of
from search_spaces.study import Study

WIDTHS = ("model.hidden_width", "model.hidden_width", "model.context_width")
TRANSFORMER = {
    "model.layers": "layers",
    "model.width": "width",
    "model.heads": "heads",
    "training.window": "window",
}
RANGES = {
    "model.head_rank": "rank of the head",
    "training.learning_rate": "learning rate",
    "training.epochs": "epochs",
    "rank_columns": "vocabulary",
    "parameters": "weights",
}
SECONDS = ("wall_seconds", "seconds")
"""Metrics of a trial's duration. The second excludes measurements and is used if the first is
missing."""
MINUTE, DAY = "%Y-%m-%d %H:%M", "%Y-%m-%d "


def run_facts(
    study: Study,
    summary: StudySummaryNumbers,
    results: FlatResults,
    *,
    times: Iterable[tuple[datetime, datetime]] = (),
    environment: Environment | None = None,
) -> dict[str, str]:
    """Return scale, corpus, trials, models, dates, time and environment, if known.

    `times` has the first start and the end of each trial. `environment` counts the values in the
    done trials.
    """
    key = summary.key
    with_seeds = study.trains or len(summary.seeds) > 1
    facts = {
        "scale": key.scale,
        "corpus": formats.corpus_title(key.corpus) if study.reads_text else "",
        "trials": ", ".join(f"{count} {state}" for state, count in summary.counts.items()),
        "seeds": some_of(list(map(str, summary.seeds)), formats.VALUES_SHOWN) if with_seeds else "",
        "settings": ", ".join(filter(None, [summary.extent, *Variant.read(key.overrides).typed])),
        **_trained(results),
        "date": _date(list(times)),
        "time of all trials": _time(results),
        **{name: formats.with_counts(values) for name, values in (environment or {}).items()},
    }
    return {name: value for name, value in facts.items() if value}


def _trained(results: FlatResults) -> dict[str, str]:
    facts: dict[str, str] = {}
    if "model.hidden_width" in results.config_columns:
        facts["embedding width"] = _range(results, "model.embedding_width")
        facts["LSTM layers"] = (
            f"{len(WIDTHS)}, of widths {', '.join(_range(results, name) for name in WIDTHS)}"
        )
    if "model.heads" in results.config_columns:
        sizes = (f"{title} {_range(results, name)}" for name, title in TRANSFORMER.items())
        facts["Transformer"] = ", ".join(sizes)
    if facts:
        facts |= {title: _range(results, name) for name, title in RANGES.items()}
    return facts


def _range(results: FlatResults, name: str) -> str:
    values = sorted({value for record in results.records if is_number(value := record.get(name))})
    texts = [formats.setting(value) if value % 1 else formats.number(value) for value in values]
    return " to ".join(dict.fromkeys([*texts[:1], *texts[-1:]]))


def _time(results: FlatResults) -> str:
    name = next((name for name in SECONDS if name in results.metric_columns), "")
    seconds = [record[name] for record in results.records if name and is_number(record[name])]
    return duration(sum(seconds)) if seconds else ""


def _date(times: Sequence[tuple[datetime, datetime]]) -> str:
    if not times:
        return ""
    start, end = min(start for start, _ in times), max(end for _, end in times)
    first, last = f"{start:{MINUTE}}", f"{end:{MINUTE}}"
    return (
        f"{first} UTC" if first == last else f"{first} to {last.removeprefix(f'{start:{DAY}}')} UTC"
    )
