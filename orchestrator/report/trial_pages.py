"""A page for each trial of a report: its curve, its spectrum, its config, all its metrics, and how
to run it alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis import ID_DIGITS, FlatResults, Row
from orchestrator.report import formats
from orchestrator.report.index import Card
from orchestrator.report.paths import CONFIG_FILE, RUN_ALONE, TRIALS_FOLDER, trial_page
from orchestrator.report.plots import Axis, Curve, plot, spanned
from orchestrator.report.prose import TEMPLATES, template
from orchestrator.report.records import StudyRecords
from orchestrator.report.run_facts import MINUTE
from orchestrator.report.sections.spectra import shown_indices
from orchestrator.words import one_line, some_of
from trainables.trial_folder import TOP_K, EpochMetrics, WordsAfter, trial_directory, write_file

MARK = re.compile(rb"<!-- [0-9a-f]{64} -->\n")
"""The last line of a page that was written here."""
MARK_BYTES = 74
EPOCHS_SHOWN = 60
"""Epochs with a name of their own; of more, some."""
LARGEST_LOSS = 300.0
"""Nats; exp of more is no number to draw."""
LEAST_SHARE = 1e-12
NOISE = 1e-2
"""Below so much of the tolerance a spectrum is rounding noise."""


@dataclass(frozen=True, kw_only=True)
class TrialPage:
    """What a trial's page is made from, and nothing besides."""

    title: str
    """Of the study."""
    variant: str
    index: bool
    """Whether there is a page over all reports."""
    record: Mapping[str, Any]
    """Of `FlatResults`."""
    metric_columns: Sequence[str]
    row: Row
    settings: Sequence[tuple[str, str, str]]
    """What differs between the study's trials: its title, this trial's value, all values."""
    epochs: Sequence[EpochMetrics]
    spectrum: NDArray[np.float64]
    environment: Mapping[str, str]
    times: Sequence[datetime]
    """Its first start and its end."""
    neighbours: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]
    """The records of the trial before and of the one behind."""

    @property
    def mark(self) -> str:
        """Changes with anything of the page."""
        epochs = [tuple(vars(epoch).values()) for epoch in self.epochs]
        names = [other and (other["name"], other["trial_id"]) for other in self.neighbours]
        report = (_code(), self.title, self.variant, self.index, names)
        inputs = (
            *report,
            self.record["name"],
            self.row,
            self.settings,
            epochs,
            self.environment,
            self.times,
        )
        return sha256(
            repr(inputs).encode(errors="surrogatepass") + self.spectrum.tobytes()
        ).hexdigest()

    def render(self) -> str:
        """The page."""
        config = json.dumps(self.row["config"], indent=1)
        measured = {
            name: self.record[name] for name in self.metric_columns if self.record[name] is not None
        }
        contexts = [name for name in measured if TOP_K.fullmatch(name)]
        metrics = {name: value for name, value in measured.items() if name not in contexts}
        return template("trial.html.j2").render(
            title=self.title,
            variant=self.variant,
            index=self.index,
            record=self.record,
            cause=one_line(self.row["cause"] or ""),
            place=self.row.get("place"),
            settings=self.settings,
            curve=_learning_curve(self.epochs),
            averaged=next((epoch.epoch for epoch in self.epochs if epoch.averaging), None),
            spectrum=_spectrum(self.spectrum, metrics.get("press_tolerance")),
            metrics=[
                (formats.title(name), formats.cell(name, value)) for name, value in metrics.items()
            ],
            words={
                name.partition(" ")[2]: WordsAfter.model_validate_json(measured[name])
                for name in contexts
            },
            config=config,
            environment=self.environment,
            times=[f"{moment:{MINUTE}} UTC" for moment in self.times],
            folder=trial_directory(Path(), self.row["trial_id"]),
            page=trial_page,
            config_file=CONFIG_FILE,
            run_alone=RUN_ALONE,
            neighbours=self.neighbours,
        )


def write_trial_pages(
    card: Card, results: FlatResults, records: StudyRecords, out: Path, *, index: bool
) -> None:
    """Write the page of every trial that has none or another one below the folder `out`; `index`
    says whether there is a page over all reports. Raises OSError."""
    (out / TRIALS_FOLDER).mkdir(parents=True, exist_ok=True)
    for page in trial_pages(card, results, records, index=index):
        path, mark = out / trial_page(page.row["trial_id"]), f"<!-- {page.mark} -->\n".encode()
        if _end_of(path) != mark:
            write_file(path, page.render().encode(errors="backslashreplace"), mark, durable=False)


def remove_other_pages(results: FlatResults, out: Path) -> None:
    """Remove the pages of trials that left the plan, and nothing that was not written here. Raises
    OSError."""
    pages = {out / trial_page(record["trial_id"]) for record in results.records}
    for path in (out / TRIALS_FOLDER).glob(f"{'[0-9a-f]' * ID_DIGITS}.html"):
        if path not in pages and path.is_file() and MARK.fullmatch(_end_of(path)):
            path.unlink(missing_ok=True)


def trial_pages(
    card: Card, results: FlatResults, records: StudyRecords, *, index: bool
) -> Iterator[TrialPage]:
    """In the order of the plan."""
    values = {
        name: list(dict.fromkeys(formats.setting(record[name]) for record in results.records))
        for name in results.varying
    }
    titles = [formats.title(name) for name in values]
    around = pairwise([None, *results.records, None])
    behind = [(left, right) for (left, _), (_, right) in pairwise(around)]
    for record, row, neighbours in zip(results.records, records.rows, behind, strict=True):
        trial_id = row["trial_id"]
        yield TrialPage(
            title=card.title,
            variant=card.variant,
            index=index,
            record=record,
            metric_columns=results.metric_columns,
            row=row,
            settings=[
                (
                    name if titles.count(text) > 1 else text,
                    formats.setting(record[name]),
                    some_of(others, formats.VALUES_SHOWN),
                )
                for (name, others), text in zip(values.items(), titles, strict=True)
            ],
            epochs=records.epochs.get(trial_id, ()),
            spectrum=records.spectra.get(trial_id, np.empty(0)),
            environment=records.environments.get(trial_id, {}),
            times=records.times.get(trial_id, ()),
            neighbours=neighbours,
        )


def _learning_curve(epochs: Sequence[EpochMetrics]) -> str:
    """Empty where there is none to draw; an epoch in which the loss became infinite has no
    place."""
    rows = [(epoch.epoch, epoch.valid_loss, epoch.train_loss, epoch.averaging) for epoch in epochs]
    table = np.array(
        [row for row in rows if max(map(abs, row[1:3])) < LARGEST_LOSS], dtype=float
    ).reshape(-1, 4)
    if not len(table):
        return ""
    places, valid, train = table[:, 0], np.exp(table[:, 1]), np.exp(table[:, 2])
    x = spanned("epoch", places, whole=True)
    y = spanned("perplexity", np.concatenate([valid, train]), logarithmic=True)
    averaged = places[table[:, 3] == 1][:1] - 0.5
    named = shown_indices(len(table), points=EPOCHS_SHOWN)
    names = [
        f"epoch {places[i]:.0f}: {formats.cell('valid_perplexity', float(valid[i]))}" for i in named
    ]
    curves = [
        *(_limit(x, y, across=max(x.low, switch)) for switch in averaged),
        Curve(points=np.column_stack([places, train]), kind="second"),
        Curve(points=np.column_stack([places, valid])),
        Curve(points=np.column_stack([places, valid])[named], names=names),
    ]
    return plot(x, y, curves, label="Validation and train perplexity after each epoch")


def _spectrum(values: NDArray[np.float64], tolerance: Any) -> str:
    """Empty where there is none to draw."""
    if len(values) < 2 or not np.isfinite(values).all() or values[0] <= 0:
        return ""
    limit = tolerance / values[0] if isinstance(tolerance, float) else 0.0
    indices = shown_indices(len(values))
    points = np.column_stack([indices + 1.0, values[indices] / values[0]])
    points = points[points[:, 1] > min(max(NOISE * limit, LEAST_SHARE), NOISE)]
    x = spanned("index of the singular value", points[:, 0], logarithmic=True)
    y = spanned("singular value / largest one", points[:, 1], logarithmic=True)
    limits = [_limit(x, y, down=limit)] if y.low < limit < y.high else []
    return plot(
        x,
        y,
        [Curve(points=points), *limits],
        label="Singular values over their index, both logarithmic",
    )


def _limit(x: Axis, y: Axis, *, across: float | None = None, down: float | None = None) -> Curve:
    """A line through the axes."""
    ends = (
        [(x.low, down), (x.high, down)] if across is None else [(across, y.low), (across, y.high)]
    )
    return Curve(points=np.array(ends, dtype=float), kind="limit")


@cache
def _code() -> str:
    """Changes with what makes the pages."""
    files = sorted([*TEMPLATES.iterdir(), *TEMPLATES.parent.glob("*.py")])
    return sha256(b"".join(path.read_bytes() for path in files if path.is_file())).hexdigest()


def _end_of(path: Path) -> bytes:
    """Where a page has its mark; empty where there is no such file."""
    try:
        with path.open("rb") as file:
            file.seek(-MARK_BYTES, 2)
            return file.read()
    except OSError:
        return b""
