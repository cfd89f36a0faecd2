"""The page as a real browser shows it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.browser import EXECUTABLE, Browser
from tests.support.synthetic_results import fail, make_results, report_on

pytestmark = pytest.mark.skipif(EXECUTABLE is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    rows, spectra = make_results()
    rows[10] = fail(rows[10], state="failed", cause="RuntimeError: " + "a_very_long_word" * 20)
    environments = {row["trial_id"]: {"device": "cpu", "processor": "x" * 90} for row in rows}
    out = tmp_path_factory.mktemp("report")
    command = "python sweep.py " + "long_name" * 20
    report = report_on(rows, out, spectra=spectra, environments=environments, paper_command=command)
    return report.path.as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1280])
def test_it_loads_alone_without_a_complaint_and_fits(browser: Browser, address: str, width: int, dark: bool) -> None:
    browser.open(address, width=width, dark=dark)
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith("data:")] == [address]
    assert browser.evaluate("innerWidth") == width
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.querySelectorAll('figure svg').length") == 5


def test_a_column_sorts_by_number_both_ways_with_missing_values_last(browser: Browser, address: str) -> None:
    browser.open(address, width=1280)
    column = browser.evaluate(
        "[...document.querySelectorAll('#trials-table th')].findIndex((h) => h.textContent === 'test perplexity')"
    )
    assert column > 0
    for sign in (1, -1):
        browser.evaluate(f"document.querySelectorAll('#trials-table th button')[{column}].click()")
        cells = f"[...document.querySelectorAll('#trials-table tbody tr')].map((r) => r.cells[{column}].dataset.value)"
        values = browser.evaluate(f"{cells}.map((v) => v ?? null)")
        assert values[-1] is None and None not in values[:-1]
        numbers = [sign * float(value) for value in values[:-1]]
        assert numbers == sorted(numbers) and len(numbers) == 71


def test_a_sheet_of_paper_holds_the_whole_width(browser: Browser, address: str) -> None:
    browser.open(address, width=718)
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 718
    assert browser.evaluate("[...document.querySelectorAll('table')].every((t) => t.scrollWidth <= innerWidth)")
    browser.call("Emulation.setEmulatedMedia", media="")
