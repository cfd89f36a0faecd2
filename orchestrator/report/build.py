"""From the store's results to the report: numbers, figures, tables and the page, all in one folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from orchestrator.analysis.comparison import ComparedCorrelation
from orchestrator.analysis.environments import count_values
from orchestrator.analysis.frames import Row, flatten
from orchestrator.analysis.summary import StudySummaryNumbers, summarise
from orchestrator.report import formats
from orchestrator.report.figures import DrawnFigure, Points, heat_map, save, scatter
from orchestrator.report.files import TRIALS_FILE, write_csv, write_files
from orchestrator.report.index import CARD_FILE, card_of
from orchestrator.report.page import Part, compose, render
from orchestrator.report.sections import Section, sections
from orchestrator.report.spectra import Spectrum, draw_spectra
from orchestrator.store.records import StudyKey
from orchestrator.words import counted
from search_spaces.study import GridMap, GroupSpectra, Study
from trainables.errors import UserError
from trainables.trial_folder.files import write_file


@dataclass(frozen=True, kw_only=True)
class ReportResult:
    """Where the page is, and the numbers in it."""

    path: Path
    summary: StudySummaryNumbers


def build_report(
    study: Study,
    key: StudyKey,
    rows: Sequence[Row],
    *,
    spectra: Mapping[str, NDArray[np.float64]],
    environments: Mapping[str, Mapping[str, str]],
    paper_command: str | None,
    out: Path,
) -> ReportResult:
    """Write report.html with its figures (SVG, PNG, PDF) and tables (CSV) into the folder `out`.

    `rows` are the trials as `Store.results` gives them; by trial id, `spectra` are their singular values, descending,
    and `environments` what they were computed with. `paper_command` is what to type for the paper's scale; None shows
    nothing. Several processes may write the same folder at the same time. Raises UserError where `out` cannot be
    written to.
    """
    results = flatten(rows)
    frame = results.frame()
    summary = summarise(study, key, results, frame, spectra)
    done = [row["trial_id"] for row in rows if row["state"] == "done"]
    environment = count_values([environments.get(trial_id, {}) for trial_id in done])
    try:
        out.mkdir(parents=True, exist_ok=True)
        figures = _draw(study, summary, frame, spectra, out)
        parts = [_place(section, out) for section in sections(summary)]
        write_files(summary, results, out)
        page = compose(
            study,
            summary,
            results,
            figures=figures,
            parts=parts,
            environment=environment,
            paper_command=paper_command,
            trials_file=TRIALS_FILE,
        )
        path = out / "report.html"
        write_file(path, render(page).encode())
        write_file(out / CARD_FILE, card_of(page).model_dump_json(indent=1).encode())
    except OSError as error:
        raise UserError(
            f"the report needs a folder that can be written to, but {out} cannot ({error.strerror or error}); "
            "free space or name another one with --out"
        ) from error
    return ReportResult(path=path, summary=summary)


def _place(section: Section, out: Path) -> Part:
    """A section with its figures drawn and its files written."""
    for name, lines in section.files.items():
        write_csv(out / name, lines)
    drawn = [save(drawing.draw(), out, name=drawing.name, caption=drawing.caption) for drawing in section.drawings]
    return Part(section=section, figures=tuple(drawn))


def _draw(
    study: Study,
    summary: StudySummaryNumbers,
    frame: pd.DataFrame,
    spectra: Mapping[str, NDArray[np.float64]],
    out: Path,
) -> list[DrawnFigure]:
    done = frame[frame["state"] == "done"]
    colour_by = _colour_column(study, done)
    figures = [
        _draw_scatter(done, line, summary, colour_by, out)
        for line in summary.correlations
        if line.window is None and line.pearson.n
    ]
    for grid in summary.grids:
        if grid.values:
            caption = f"{formats.capital(formats.title(grid.metric))} over {formats.title(grid.row)} and "
            caption += f"{formats.title(grid.column)}"
            caption += ", means of a cell's trials." if max(c.trials for row in grid.cells for c in row) > 1 else "."
            figures.append(save(heat_map(grid), out, name=grid.name, caption=caption))
    by_group = any(isinstance(request, GroupSpectra) for request in study.analyses)
    return figures + _draw_spectra(done, spectra, out, by_group=by_group)


def _draw_scatter(
    done: pd.DataFrame, line: ComparedCorrelation, summary: StudySummaryNumbers, colour_by: str | None, out: Path
) -> DrawnFigure:
    window = next(
        (other.window for other in summary.correlations if other.window and (other.x, other.y) == (line.x, line.y)),
        None,
    )
    shown = done.dropna(subset=[line.x, line.y])
    x_title, y_title = (formats.title(name) for name in (line.x, line.y))
    points = Points(
        x=list(shown[line.x]),
        y=list(shown[line.y]),
        colour=list(shown[colour_by]) if colour_by else None,
        x_title=formats.capital(x_title),
        y_title=formats.capital(y_title),
        colour_title=formats.title(colour_by) if colour_by else "",
    )
    caption = f"{formats.capital(y_title)} against {x_title}, a point a trial"
    caption += f", coloured by {formats.title(colour_by)}" if colour_by else ""
    caption += f". Grey band: {formats.window(window, line.y)}." if window else "."
    return save(scatter(points, window=window), out, name=f"{line.y}_against_{line.x}", caption=caption)


def _colour_column(study: Study, done: pd.DataFrame) -> str | None:
    """The columns of the first grid that has numbers: what the points' colours mean."""
    columns = [request.column for request in study.analyses if isinstance(request, GridMap)]
    for name in columns:
        if name in done.columns and is_numeric_dtype(done[name]) and done[name].notna().all():
            return name
    return None


def _draw_spectra(
    done: pd.DataFrame, spectra: Mapping[str, NDArray[np.float64]], out: Path, *, by_group: bool
) -> list[DrawnFigure]:
    if "press_rank" not in done.columns:
        return []
    chosen = [
        Spectrum(
            values=spectra[row["trial_id"]],
            press_rank=float(row["press_rank"]),
            relative_tolerance=_relative(row.get("press_tolerance"), row.get("sigma_max")),
            group=row["group"] if by_group else None,
        )
        for row in done.dropna(subset=["press_rank"]).to_dict("records")
        if len(spectra.get(row["trial_id"], ()))
    ]
    if not chosen:
        return []
    colours = "group" if by_group else "Press rank"
    what = f"Normalised singular values of log P, {counted(len(chosen), 'trial')}, coloured by {colours}"
    return [
        save(draw_spectra(chosen, logarithmic=False), out, name="spectra_linear", caption=f"{what}, cut like Fig. 7."),
        save(draw_spectra(chosen, logarithmic=True), out, name="spectra_logarithmic", caption=f"{what}, logarithmic."),
    ]


def _relative(tolerance: float | None, sigma_max: float | None) -> float | None:
    if tolerance is None or sigma_max is None or not tolerance > 0 or not sigma_max > 0:
        return None
    return float(f"{tolerance / sigma_max:.6g}")
