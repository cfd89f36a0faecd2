"""A page for each trial of a report: its curve, its spectrum, its config, all its metrics, and how
to run it alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis import ID_DIGITS, FlatResults, Row
from orchestrator.report import formats
from orchestrator.report.index import Card
from orchestrator.report.paths import CONFIG_FILE, RUN_ALONE, TRIALS_FOLDER, trial_page
from orchestrator.report.plots import Axis, plot
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
METRIC = "valid_perplexity"
NOISE = 1e-2
"""Below so much of the tolerance a spectrum is rounding noise."""


def write_trial_pages(
    card: Card, results: FlatResults, records: StudyRecords, out: Path, *, index: bool
) -> None:
    """Write the page of every trial that has none or another one below the folder `out`; `index`
    says whether there is a page over all reports. Raises OSError."""
    (out / TRIALS_FOLDER).mkdir(parents=True, exist_ok=True)
    values = {
        name: list(dict.fromkeys(formats.setting(record[name]) for record in results.records))
        for name in results.varying
    }
    titles = [formats.title(name) for name in values]
    names = [{name: record[name] for name in ("name", "trial_id")} for record in results.records]
    around = zip([None, *names], [*names[1:], None], strict=False)
    for record, row, neighbours in zip(results.records, records.rows, around, strict=False):
        trial_id = row["trial_id"]
        inputs = {
            "title": card.title,
            "variant": card.variant,
            "index": index,
            "name": record["name"],
            "row": row,
            "settings": [
                (
                    name if titles.count(title) > 1 else title,
                    formats.setting(record[name]),
                    some_of(others, formats.VALUES_SHOWN),
                )
                for (name, others), title in zip(values.items(), titles, strict=True)
            ],
            "environment": records.environments.get(trial_id, {}),
            "times": [f"{moment:{MINUTE}} UTC" for moment in records.times.get(trial_id, ())],
            "neighbours": neighbours,
        }
        epochs = records.epochs.get(trial_id, ())
        spectrum = records.spectra.get(trial_id, np.empty(0))
        # Changes with anything of the page.
        told = repr((_code(), inputs, [tuple(vars(epoch).values()) for epoch in epochs]))
        digest = sha256(told.encode(errors="surrogatepass") + spectrum.tobytes()).hexdigest()
        path, mark = out / trial_page(trial_id), f"<!-- {digest} -->\n".encode()
        if _end_of(path) != mark:
            metrics = {
                name: record[name] for name in results.metric_columns if name in row["metrics"]
            }
            page = _page(inputs, row, metrics, epochs, spectrum)
            write_file(path, page.encode(errors="backslashreplace"), mark, durable=False)


def remove_other_pages(results: FlatResults, out: Path) -> None:
    """Remove the pages of trials that left the plan, and nothing that was not written here. Raises
    OSError."""
    pages = {out / trial_page(record["trial_id"]) for record in results.records}
    for path in (out / TRIALS_FOLDER).glob(f"{'[0-9a-f]' * ID_DIGITS}.html"):
        if path not in pages and path.is_file() and MARK.fullmatch(_end_of(path)):
            path.unlink(missing_ok=True)


def _page(
    inputs: Mapping[str, Any],
    row: Row,
    metrics: Mapping[str, Any],
    epochs: Sequence[EpochMetrics],
    spectrum: NDArray[np.float64],
) -> str:
    contexts = [name for name in metrics if TOP_K.fullmatch(name)]
    return template("trial.html.j2").render(
        inputs,
        cause=one_line(row["cause"] or ""),
        curve=_learning_curve(epochs),
        averaged=next((epoch.epoch for epoch in epochs if epoch.averaging), None),
        spectrum=_spectrum(spectrum, metrics.get("press_tolerance")),
        metrics=[
            (formats.title(name), formats.cell(name, value))
            for name, value in metrics.items()
            if name not in contexts and value is not None
        ],
        words={
            name.partition(" ")[2]: WordsAfter.model_validate_json(metrics[name])
            for name in contexts
        },
        config=json.dumps(row["config"], indent=1),
        folder=trial_directory(Path(), row["trial_id"]),
        page=trial_page,
        config_file=CONFIG_FILE,
        run_alone=RUN_ALONE,
    )


def _learning_curve(epochs: Sequence[EpochMetrics]) -> str:
    """Return the curve; an epoch in which the loss became infinite has no place."""
    rows = [(epoch.epoch, epoch.valid_loss, epoch.train_loss, epoch.averaging) for epoch in epochs]
    finite = [row for row in rows if max(map(abs, row[1:3])) < LARGEST_LOSS]
    if not finite:
        return ""
    places, *losses, averaging = np.array(finite, dtype=float).T
    valid, train = (np.column_stack([places, np.exp(loss)]) for loss in losses)
    x = Axis(label="epoch", values=places)
    y = Axis(label="perplexity", values=np.concatenate([valid, train])[:, 1], logarithmic=True)
    lines = [("second", train), ("first", valid)]
    if averaging.any():
        switch = max(x.ends[0], places[averaging == 1][0] - 0.5)
        lines.insert(0, ("limit", np.column_stack([[switch, switch], y.ends])))
    shown = shown_indices(len(places), points=EPOCHS_SHOWN)
    return plot(
        x,
        y,
        lines,
        points=valid[shown],
        names=[
            f"epoch {at:.0f}: {formats.cell(METRIC, value)}" for at, value in valid[shown].tolist()
        ],
        label="Validation and train perplexity after each epoch",
    )


def _spectrum(values: NDArray[np.float64], tolerance: Any) -> str:
    if len(values) < 2 or not np.isfinite(values).all() or values[0] <= 0:
        return ""
    limit = tolerance / values[0] if isinstance(tolerance, float) else 0.0
    indices = shown_indices(len(values))
    points = np.column_stack([indices + 1.0, values[indices] / values[0]])
    points = points[points[:, 1] > min(max(NOISE * limit, LEAST_SHARE), NOISE)]
    x = Axis(label="index of the singular value", values=points[:, 0], logarithmic=True)
    y = Axis(label="singular value / largest one", values=points[:, 1], logarithmic=True)
    lines = [("first", points)]
    if y.ends[0] < limit < y.ends[1]:
        lines.append(("limit", np.column_stack([x.ends, [limit, limit]])))
    return plot(x, y, lines, label="Singular values over their index, both logarithmic")


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
