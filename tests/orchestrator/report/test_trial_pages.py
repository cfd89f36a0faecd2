"""The page of a trial, beside the trial's own numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest

from orchestrator.report.paths import trial_page
from tests.support.synthetic_results import fail, make_results, report_on
from trainables.config import read_config
from trainables.trial_folder import EpochMetrics

EPOCHS, SWITCH = 200, 31
LOSSES = np.log(np.linspace(900, 120, EPOCHS))


def epoch(number: int, train: float, valid: float) -> EpochMetrics:
    averaging = number >= SWITCH
    losses = {"train_loss": train, "valid_loss": valid}
    return EpochMetrics(epoch=number, tokens=number, averaging=averaging, seconds=1.0, **losses)


@pytest.fixture(scope="module")
def trials(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, list[dict[str, Any]], Mapping[str, Any]]:
    """The folder of a report, the trials and their spectra."""
    rows, spectra = make_results(columns=10_000)
    rows[0]["name"] += " <b>"
    rows[1] = fail(rows[1], state="failed", cause="RuntimeError: <i>out of memory</i>")
    epochs = [epoch(i, loss - 0.1, loss) for i, loss in enumerate(LOSSES.tolist(), 1)]
    del spectra[rows[1]["trial_id"]]
    out = tmp_path_factory.mktemp("report")
    report_on(
        rows,
        out,
        spectra=spectra,
        epochs={rows[0]["trial_id"]: epochs},
        environments={rows[0]["trial_id"]: {"device": "a <gpu>"}},
    )
    return out, rows, spectra


def polylines(page: str) -> dict[str, np.ndarray]:
    """The points of a page's lines: of the learning curve, the limits, and the spectrum, which
    comes last."""
    lines = re.findall(r'<polyline class="(\w+)" points="([^"]*)"', page)
    return {
        f"{kind} {i}": np.array([place.split(",") for place in text.split()], float)
        for i, (kind, text) in enumerate(lines)
    }


def test_one_can_walk_through_all_trials_and_back_to_the_report(trials: Any) -> None:
    out, rows, _ = trials
    path, seen = out / trial_page(rows[0]["trial_id"]), []
    while path not in seen:
        seen.append(path)
        page = path.read_text()
        assert (
            path.parent / "../report.html"
        ).resolve() == out / "report.html" and 'href="../report.html"' in page
        if behind := re.search(r'href="([^"]*)" rel="next"', page):
            path = (path.parent / behind[1]).resolve()
    assert seen == [out / trial_page(row["trial_id"]) for row in rows]


def test_it_has_the_config_as_a_file_that_is_that_trial(trials: Any) -> None:
    out, rows, _ = trials
    for row in rows[:3]:
        page = (out / trial_page(row["trial_id"])).read_text()
        [content] = re.findall(r'download="trial.json" href="data:application/json,([^"]*)"', page)
        assert read_config(json.loads(unquote(unescape(content)))).trial_id == row["trial_id"]
        assert row["trial_id"] in re.sub(r"<[^>]*>", "", page)


def test_it_says_what_the_trial_was_and_why_it_failed(trials: Any) -> None:
    out, rows, _ = trials
    done, failed = ((out / trial_page(row["trial_id"])).read_text() for row in rows[:2])
    assert "&lt;b&gt;" in done and "a &lt;gpu&gt;" in done and "<b>" not in done
    assert f"<dd>{rows[0]['metrics']['press_rank']}</dd>" in done
    assert "<strong>failed:</strong> RuntimeError: &lt;i&gt;out of memory" in failed
    values = "<td>1.25</td><td>1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75, 3</td>"
    assert f'<tr><td class="name">k</td>{values}</tr>' in done
    assert "<svg" not in failed, "it has neither a curve nor a spectrum"


def test_the_curve_and_the_spectrum_are_the_trials(trials: Any) -> None:
    out, rows, spectra = trials
    page = (out / trial_page(rows[0]["trial_id"])).read_text()
    lines = polylines(page)
    switch, train, valid, spectrum, tolerance = lines.values()
    # The axes are linear in the epoch and in the logarithms of all else.
    np.testing.assert_allclose(
        np.diff(valid[:, 0]), (valid[-1, 0] - valid[0, 0]) / (EPOCHS - 1), atol=0.11
    )
    np.testing.assert_allclose(np.corrcoef(valid[:, 1], LOSSES)[0, 1], -1, atol=1e-5)
    assert len(train) == EPOCHS and switch[0, 0] == pytest.approx(
        (valid[SWITCH - 2, 0] + valid[SWITCH - 1, 0]) / 2, abs=0.2
    )
    assert 60 < page.count("<circle") <= 120 and "<title>epoch 1: 900.0</title>" in page
    assert len(spectrum) < 320 < len(spectra[rows[0]["trial_id"]])
    above = int((spectrum[:, 1] < tolerance[0, 1]).sum())
    shown = spectrum[above - 1 : above + 1, 0]
    width = spectrum[-1, 0] - spectrum[0, 0]
    metrics, values = rows[0]["metrics"], spectra[rows[0]["trial_id"]]
    last = np.log((values > 0.01 * metrics["press_tolerance"]).sum())
    place = spectrum[0, 0] + width * np.log(metrics["press_rank"]) / last
    assert shown[0] - 2 <= place <= shown[1] + 2


def test_a_page_is_written_again_where_its_trial_or_its_neighbour_changed(tmp_path: Path) -> None:
    rows, spectra = make_results(columns=50)

    def build() -> dict[str, int]:
        report_on(rows, tmp_path, spectra=spectra)
        return {path.name: path.stat().st_mtime_ns for path in (tmp_path / "trials").iterdir()}

    first, unchanged = build(), build()
    assert first == unchanged and len(first) == 72
    rows[5]["metrics"]["test_perplexity"] *= 1.5
    spectra[rows[9]["trial_id"]] = spectra[rows[9]["trial_id"]] * 2
    rows[20]["name"] += "x"
    again = {name for name, time in build().items() if time != first[name]}
    assert again == {Path(trial_page(rows[place]["trial_id"])).name for place in (5, 9, 19, 20, 21)}
    cut = tmp_path / trial_page(rows[0]["trial_id"])
    cut.write_bytes(cut.read_bytes()[:-10])
    build()
    assert cut.read_bytes().endswith(b"-->\n"), "one that is not whole is written again"


def test_pages_of_trials_that_left_the_plan_go_and_a_strangers_files_stay(tmp_path: Path) -> None:
    rows, _ = make_results()
    report_on(rows, tmp_path)
    notes, copy = tmp_path / "trials" / f"{'0' * 12}.html", tmp_path / "trials" / "copy.html"
    notes.write_text("<!-- of mine -->\n")
    copy.write_bytes((tmp_path / trial_page(rows[70]["trial_id"])).read_bytes())
    report_on(rows[:5], tmp_path)
    pages = {tmp_path / trial_page(row["trial_id"]) for row in rows[:5]}
    assert len(pages) == 5 and {*(tmp_path / "trials").iterdir()} == {notes, copy, *pages}


def test_numbers_that_cannot_be_drawn_are_left_out(tmp_path: Path) -> None:
    rows, _ = make_results(columns=50)
    rows = rows[:4]
    rows[2]["metrics"]["press_tolerance"] = 1e9
    losses = [(5.0, 4.0), (1e300, 4.0), (4.0, -800.0), (1e9, 1.0), (3.0, 3.5)]
    epochs = [epoch(i, train, valid) for i, (train, valid) in enumerate(losses, 1)]
    curves = [epochs, epochs[1:4], epochs[:1], []]
    spectra = [np.array([np.inf, 1.0]), np.zeros(5), np.ones(3), np.array([2.0])]
    ids = [row["trial_id"] for row in rows]
    epochs_by_id = dict(zip(ids, curves, strict=True))
    spectra_by_id = dict(zip(ids, spectra, strict=True))
    report_on(rows, tmp_path, epochs=epochs_by_id, spectra=spectra_by_id)
    pages = [(tmp_path / trial_page(row["trial_id"])).read_text() for row in rows]
    assert [page.count("<svg") for page in pages] == [1, 0, 2, 0]
    assert pages[0].count("<circle") == 2 and "epoch 5: 33.1" in pages[0]
    assert not any("nan" in page.lower().split('"') or "inf," in page for page in pages)
