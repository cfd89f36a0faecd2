from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from orchestrator.analysis.frames import flatten
from orchestrator.analysis.spectra import Spectrum
from orchestrator.report.figures import STYLE
from orchestrator.report.questions import StudyResults, answer
from orchestrator.report.sections.spectra import spectra_section
from orchestrator.store.records import StudyKey
from search_spaces.averaging import STUDY as AVERAGING
from search_spaces.mos_k import STUDY as MOS_K
from search_spaces.rank_metrics import STUDY as RANK_METRICS
from search_spaces.seeds import STUDY as SEEDS
from search_spaces.study import Study
from tests.support.synthetic_results import fail, training, trial_row
from trainables.config import CorpusConfig


def figures(
    study: Study, *, columns: int = 10_000, without: str = ""
) -> Iterator[tuple[str, Figure]]:
    corpus = CorpusConfig(name="ptb", sha256="0" * 64)
    configs = {study.label(config): config for config in study.trials(corpus)}
    rows, spectra, epochs = [], {}, {}
    for i, (name, config) in enumerate(configs.items()):
        rank = int(np.geomspace(26, columns - 1, len(configs))[i])
        index = np.arange(1, columns + 1)
        spectra[name], epochs[name] = (
            900 / index / (1 + (index / rank) ** 4),
            training([9, rank, rank], [6.0, 5.0, 4.5]),
        )
        measured = {
            "press_rank": rank,
            "press_tolerance": 1e-3,
            "sigma_max": 900.0,
            "parameters": 24_220_000,
        }
        perplexity = {f"{part}_perplexity": 57.0 + i for part in ("train", "valid", "test")}
        rows.append(
            trial_row(name, config=config.model_dump(mode="json"), **measured, **perplexity)
        )
    rows = [fail(row, state="failed", cause="") if row["name"] == without else row for row in rows]
    key = StudyKey(study=study.name, scale="paper", corpus="ptb")
    results = StudyResults(
        study=study, key=key, frame=flatten(rows).frame(), spectra=spectra, epochs=epochs
    )
    for drawing in (
        drawing for answered in answer(results) for drawing in answered.section.drawings
    ):
        with mpl.rc_context(STYLE):
            yield drawing.name, drawing.draw()


@pytest.mark.parametrize(
    "study", [MOS_K, AVERAGING, SEEDS, RANK_METRICS], ids=lambda study: study.name
)
def test_no_word_is_clipped(study: Study) -> None:
    drawn = dict(figures(study))
    assert {"groups", "rank_over_training", "spectra_linear", "spectra_logarithmic"} <= set(drawn)
    for name, figure in drawn.items():
        figure.draw_without_rendering()
        needed, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
        assert needed.x0 > -0.01 and needed.y0 > -0.01, name
        assert needed.x1 < width + 0.01 and needed.y1 < height + 0.01, name


def test_group_keeps_its_style() -> None:
    first = RANK_METRICS.label(
        next(iter(RANK_METRICS.trials(CorpusConfig(name="ptb", sha256="0" * 64))))
    )
    whole, smaller = (
        {
            (line.get_label(), line.get_color(), line.get_linestyle())
            for name in ("rank_over_training", "spectra_linear")
            for line in drawn[name].axes[0].lines
            if not str(line.get_label()).startswith("_")
        }
        for drawn in (dict(figures(RANK_METRICS)), dict(figures(RANK_METRICS, without=first)))
    )
    assert (
        len({label for label, _, _ in whole})
        == len(whole)
        == len({(colour, line) for _, colour, line in whole})
        > 3
    )
    assert smaller < whole and len(smaller) == len(whole) - 1


def spectrum(values: np.ndarray) -> Spectrum:
    return Spectrum(values=values, press_rank=9, relative_tolerance=1e-6)


def linear(*spectra: Spectrum) -> tuple[str, tuple[float, float], float]:
    drawing = spectra_section(spectra).drawings[0]
    points = np.concatenate([line.get_xydata() for line in drawing.draw().axes[0].lines])
    return drawing.caption, (points[:, 0].min(), points[:, 0].max()), points[:, 1].max()


def test_long_spectrum_is_cut_like_papers() -> None:
    caption, x, y = linear(spectrum(900.0 / np.arange(1, 10_001)))
    assert caption.endswith("cut like Fig. 7.") and x == (5, 500) and y == 0.2


def test_shorter_spectrum_fills_its_figure() -> None:
    # Half of 0.04 from the second to the 31st value, then too small to see.
    values = np.concatenate([[100.0], np.full(10, 4.0), np.full(20, 2.0), np.full(269, 0.01)])
    caption, x, high = linear(spectrum(values), spectrum(values / 3))
    assert caption.endswith("indices 2 to 31.") and x == (2, 31) and high == 0.04


def test_one_column_matrix_has_figure() -> None:
    assert linear(spectrum(np.array([3.0])))[1] == (1, 1)
