from __future__ import annotations

import io
from base64 import b64decode
from dataclasses import replace

import matplotlib.image
import numpy as np
import pytest

from orchestrator.report.index import write_index
from orchestrator.variants import Variant
from tests.support.browser import EXECUTABLE, Browser
from tests.support.synthetic_results import KEY, fail, make_results, report_on

pytestmark = pytest.mark.skipif(EXECUTABLE is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    rows, spectra = make_results()
    rows[10] = fail(rows[10], state="failed", cause="RuntimeError: " + "a_very_long_word" * 20)
    for row in rows:
        row["environment"] = {"device": "cpu", "processor": "x" * 90}
    out = tmp_path_factory.mktemp("report")
    command = "python sweep.py " + "long_name" * 20
    report = report_on(rows, out, spectra=spectra, paper_command=command)
    return report.path.as_uri()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1280])
def test_page_loads_without_errors(browser: Browser, address: str, width: int, dark: bool) -> None:
    browser.open(address, width=width, dark=dark)
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith("data:")] == [address]
    assert browser.evaluate("innerWidth") == width
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.querySelectorAll('figure svg').length") == 5


def test_columns_sort_missing_last(browser: Browser, address: str) -> None:
    browser.open(address, width=1280)
    column = browser.evaluate(
        "[...document.querySelectorAll('#trials-table th')].findIndex((h) => h.textContent === "
        "'test perplexity')"
    )
    assert column > 0
    for sign in (1, -1):
        browser.evaluate(f"document.querySelectorAll('#trials-table th button')[{column}].click()")
        rows = "[...document.querySelectorAll('#trials-table tbody tr')]"
        value = f"r.cells[{column}].dataset.value ?? null"
        values = browser.evaluate(f"{rows}.map((r) => {value})")
        assert values[-1] is None and None not in values[:-1]
        numbers = [sign * float(value) for value in values[:-1]]
        assert numbers == sorted(numbers) and len(numbers) == 71


def test_mark_names_its_trial(browser: Browser, address: str) -> None:
    browser.open(address, width=1280)
    name = "gss c=2 k=3"  # drawn last, so no other mark covers it
    marks = "[...document.querySelectorAll('.marks > *')]"
    mark = f"{marks}.find((one) => one.textContent.startsWith('{name}\\n'))"
    browser.evaluate(f"{mark}.scrollIntoView({{block: 'center'}})")
    box = browser.evaluate(
        f"(({{x, y, width}}) => ({{x, y, width}}))({mark}.getBoundingClientRect())"
    )
    assert 10 < box["width"] < 16
    under = "document.elementFromPoint({}, {}).closest('.marks > *')?.textContent ?? ''"
    x, y = (box[name] + box["width"] / 2 for name in "xy")
    for away in (-5, 0, 5):
        lines = browser.evaluate(under.format(x, y + away)).split("\n")
        assert (
            lines[0] == name
            and lines[1].startswith("Press rank ")
            and lines[2].startswith("test perplexity ")
        )
    assert not browser.evaluate(under.format(x + 9, y)).startswith(name)
    assert browser.complaints() == []


@pytest.mark.parametrize("dark", [False, True])
def test_figure_matches_dark_page(browser: Browser, address: str, dark: bool) -> None:
    browser.open(address, width=1280, dark=dark)
    box = browser.evaluate(
        "(({x, y, width, height}) => ({x, y, width, height}))(document.querySelector('figure "
        "svg')"
        ".getBoundingClientRect())"
    )
    shot = browser.call("Page.captureScreenshot", format="png", clip={**box, "scale": 1})["data"]
    pixels = matplotlib.image.imread(io.BytesIO(b64decode(shot)))[..., :3]
    assert (np.median(pixels) < 0.15) if dark else (np.median(pixels) > 0.95)
    ink = np.abs(pixels - np.median(pixels)).max()
    assert ink > 0.6, "the page has readable contrast"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    rows, _ = make_results(columns=50)
    out = tmp_path_factory.mktemp("index")
    for corpus, variant in (
        ("ptb", Variant()),
        ("pydocs", Variant(settings={"training.epochs": (40,)})),
    ):
        key = replace(KEY, corpus=corpus, overrides=variant.text)
        report_on(rows, out / key.variant, key=key)
    return write_index(out).as_uri()


@pytest.mark.parametrize("width", [400, 1280])
def test_index_table_fits_and_sorts(browser: Browser, index: str, width: int) -> None:
    browser.open(index, width=width)
    assert (
        browser.complaints() == []
        and browser.evaluate("document.documentElement.scrollWidth") <= width
    )
    cells = "[...document.querySelectorAll('tbody tr')].map((row) => row.cells[3].textContent)"
    assert browser.evaluate(cells) == ["PTB", "pydocs"]
    browser.evaluate("[...document.querySelectorAll('th button')][3].click()")
    assert browser.evaluate(cells) == ["PTB", "pydocs"]
    browser.evaluate("[...document.querySelectorAll('th button')][3].click()")
    assert browser.evaluate(cells) == ["pydocs", "PTB"]
    page_text = browser.evaluate("document.body.innerText")
    assert "over 72 cells" in page_text and page_text.count("training.epochs=40") == 1
