from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from orchestrator.store import open_store
from tests.end_to_end.conftest import own_address, text, viewed
from tests.support.browser import Browser
from tests.support.command import typed, wait_for
from tests.support.one_ray import start_ray
from tests.support.processes import Process

EPOCHS = 12
LENGTHS = ",".join(map(str, (1, *range(30, 45))))
"""Batch sizes. Batch size 1 trains for half a minute, so other trials start and end meanwhile."""
STUDY = """from search_spaces.awd_lstm import awd_lstm
from search_spaces.study import Study
from trainables.config import GssConfig

def trials(corpus):
    yield awd_lstm(corpus, GssConfig(c=-1, k=2))

STUDY = Study(name="batches", trials=trials, corner=list,
    measurements=("perplexity@1", "spectrum@1"))
"""
POINTS = "document.querySelectorAll('#scatter .scatterlayer .point').length"
ROWS = "document.querySelectorAll('#trials .ag-center-cols-container .ag-row').length"


def places_at_rest(browser: Browser) -> list[list[float]]:
    centre = "(({x, y, width, height}) => [x + width / 2, y + height / 2])"
    points = "[...document.querySelectorAll('#scatter .point')]"
    positions = f"{points}.map((p) => {centre}(p.getBoundingClientRect()))"
    seen: list[list[list[float]]] = [[]]
    while len(seen) < 4 or seen[-1] != seen[-4]:
        time.sleep(0.3)
        seen.append(browser.evaluate(positions))
    return seen[-1]


def asked_to_stop(button: str) -> str:
    status = f"document.querySelector('{button} [role=status]')"
    return f"{status}.textContent.includes('Asked to stop')"


def choose(tab: str) -> str:
    return f"dash_clientside.set_props('chosen-tab', {{value: {tab!r}}})"


@pytest.fixture
def batches(tmp_path: Path) -> Iterator[Process]:
    study = tmp_path / "batches.py"
    study.write_text(STUDY)
    settings = (f"training.epochs={EPOCHS}", f"training.batch_size={LENGTHS}")
    options = [word for setting in settings for word in ("--set", setting)]
    words = (study, "--scale", "smoke", *options, "--max-concurrent", "1", "--storage", tmp_path)
    process = Process(tmp_path, typed, *words, ray=start_ray())
    yield process
    if process.is_alive():
        process.kill()


@pytest.mark.timeout(400)
def test_running_sweep_is_followed_and_stopped(
    browser: Browser, batches: Process, tmp_path: Path
) -> None:
    wait_for(lambda: (tmp_path / "results.db").exists(), timeout_s=60, event="the store")
    with viewed(tmp_path) as link:
        browser.open(link, width=1280)
        running = "[...document.querySelectorAll('#overview #running + .scroll tbody tr')]"
        long = f"{running}.find((row) => row.textContent.includes('batch_size=1 '))"
        browser.wait_until(f"{long}?.textContent.includes('of {EPOCHS}')", timeout_s=200)
        assert "16" in text(browser, "#overview tbody tr")
        browser.evaluate(f"{long}.querySelector('a').click()")
        browser.wait_until("document.querySelector('#trial-stop')?.hidden === false")
        name = text(browser, "h1")
        assert name.startswith("gss c=-1 k=2, training.batch_size=1 ")
        log = "document.querySelector('.log')?.textContent ?? ''"
        browser.wait_until(f"({log}).includes('started on')")
        assert "Stop this trial?" in browser.click_and_agree("#trial-stop button")
        browser.wait_until(asked_to_stop("#trial-stop"))
        with open_store(str(tmp_path / "results.db"), create=False) as store:
            (summary,) = store.studies()
        page_text = "document.querySelector('#page').textContent"
        browser.wait_until(f"{page_text}.includes('stateplanned')")
        browser.wait_until(f"{page_text}.includes('was stopped')")
        browser.open(own_address(link), width=1280)
        done = "Number(document.querySelector('#overview td.number')?.textContent ?? -1)"
        first = browser.wait_until(f"{done} >= 0 && [{done}]")[0]
        browser.wait_until(f"{done} > {first}")
        browser.open(f"{own_address(link)}/study/{summary.key.variant}", width=1280)
        cells = "[...document.querySelectorAll('#trials [col-id=state]')]"
        rows_done = f"{cells}.filter((cell) => cell.textContent === 'done')"
        count = browser.wait_until(f"{ROWS} === 16 && [{rows_done}.length]")[0]
        browser.wait_until(f"{rows_done}.length > {count} && {POINTS} > {count}")
        browser.wait_until(
            "document.querySelector('#study-progress').textContent.includes('about')"
        )
        urls = [url for url in browser.requests() if not url.startswith("data:")]
        assert urls and all(url.startswith(own_address(link)) for url in urls)
        assert "Stop this study?" in browser.click_and_agree("#study-stop button")
        browser.wait_until(asked_to_stop("#study-stop"))
        batches.end()
        browser.wait_until("document.querySelector('#study-stop').hidden")


def act_until(browser: Browser, act: Callable[[float, float], None], expression: str) -> None:
    """Call `act` at the scatter plot's rightmost point until `expression` is true.

    One call may be too few: a busy host can redraw the figure before the mouse event arrives.
    """
    for _ in range(3):
        if positions := places_at_rest(browser):
            act(*max(positions))
        with suppress(AssertionError):
            browser.wait_until(expression, timeout_s=8)
            return
    browser.wait_until(expression)


def test_points_open_trials_boxes_filter(browser: Browser, link: str) -> None:
    def draw_a_box_around(x: float, y: float) -> None:
        browser.mouse("mouseMoved", x - 20, y - 15)
        browser.mouse("mousePressed", x - 20, y - 15)
        for step in (0, 10, 20):
            browser.mouse("mouseMoved", x - 20 + 1.5 * step, y - 15 + 1.5 * step, buttons=1)
        browser.mouse("mouseReleased", x + 10, y + 15)

    browser.open(link, width=1280)
    browser.wait_until("document.querySelector('#overview table a') !== null")
    browser.evaluate("document.querySelector('#overview table a').click()")
    browser.wait_until(f"{POINTS} === 4 && {ROWS} === 4")
    browser.wait_until("document.querySelector('#study-answer').textContent.includes('Press rank')")
    act_until(
        browser,
        draw_a_box_around,
        "document.querySelector('#trials-shown').textContent === '1 of 4 trials'",
    )
    browser.wait_until(f"{ROWS} === 1")
    name = text(browser, "#trials .opens a")
    browser.wait_until("document.querySelector('#scatter .modebar') !== null")
    act_until(browser, browser.click_at, "location.pathname.startsWith('/trial/')")
    browser.wait_until("document.querySelector('#trials-head h1') !== null")
    assert text(browser, "#trials-head h1") == name
    for graph, count in (("curves", 2), ("spectra", 1)):
        browser.wait_until(
            f"document.querySelectorAll('#{graph} .scatterlayer .js-line').length === {count}"
        )


LOOKS = ((400, True), (400, False), (1280, False), (1280, True), (400, True))


def test_pages_fit_and_log_no_error(browser: Browser, grid: Path, link: str) -> None:
    with open_store(str(grid / "results.db"), create=False) as store:
        (summary,) = store.studies()
        ids = [row.trial_id[:12] for row in store.trials(summary.key)]
    pages = {
        "/": "#overview table",
        f"/study/{summary.key.variant}": "#page:has(#chosen .scatterlayer) #trials .ag-row",
        f"/trial/{ids[0]}": "#spectra .scatterlayer",
        "/compare?" + "&".join(f"trial={start}" for start in ids): "#spectra .scatterlayer",
    }
    browser.open(link, width=400)
    for page, part in pages.items():
        browser.open(own_address(link) + page, width=400, dark=True)
        browser.wait_until(f"document.querySelector('{part}') !== null")
        for width, dark in LOOKS:
            browser.look(width=width, dark=dark)
            assert_fits(browser, width=width, dark=dark)
        assert browser.complaints() == [], page
        assert browser.evaluate("document.querySelector('.modebar [data-title*=hare]')") is None
        foreign = [
            url
            for url in browser.requests()
            if not url.startswith((own_address(link), "data:", "blob:"))
        ]
        assert foreign == []


def assert_fits(browser: Browser, *, width: int, dark: bool) -> None:
    browser.wait_until(f"innerWidth === {width} && document.documentElement.scrollWidth <= {width}")
    graphs = "[...document.querySelectorAll('.js-plotly-plot')]"
    browser.wait_until(
        f"{graphs}.every((g) => Math.abs(g.querySelector('.main-svg').clientWidth - g.clientWidth) "
        f"<= 1)"
    )
    titles = "[...document.querySelectorAll('.ag-header-cell-text')]"
    cut = browser.evaluate(
        f"{titles}.filter((t) => t.scrollWidth > t.clientWidth).map((t) => t.textContent)"
    )
    assert cut == []
    paper = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", paper))) < 200) == dark


def test_filtered_table_filters_figures(browser: Browser, link: str) -> None:
    browser.open(link, width=1280)
    browser.open(f"{own_address(link)}/study/gss_grid-smoke-pydocs", width=1280)
    browser.wait_until(f"{POINTS} === 4 && {ROWS} === 4")
    for model, count in (
        ("{'output_layer.c': {filterType: 'number', type: 'lessThan', filter: 0}}", 2),
        ("{}", 4),
    ):
        filtered = f"dash_ag_grid.getApi('trials').setFilterModel({model})"
        # The grid reports no filter while it is being laid out.
        act_until(
            browser,
            lambda *_, script=filtered: browser.evaluate(script),
            f"{POINTS} === {count} && {ROWS} === {count}",
        )
    lines = "document.querySelectorAll('#chosen .scatterlayer .trace').length"
    axis = "document.querySelector('#chosen .ytitle').textContent"
    drawn = {
        "learning curves": f"{lines} === 5 && {axis} === 'validation perplexity'",
        "spectra": f"{lines} === 4 && {axis} === 'singular value'",
    }
    for tab, condition in drawn.items():
        browser.evaluate(choose(tab))
        browser.wait_until(condition)


def test_webgl_draws_many_points(browser: Browser, link: str) -> None:
    browser.open(link, width=1280)
    browser.open(f"{own_address(link)}/study/gss_grid-smoke-pydocs", width=1280)
    browser.wait_until(f"{POINTS} === 4")
    graph = "document.querySelector('#scatter .js-plotly-plot')"
    many = "{type: 'scattergl', mode: 'markers', x: [1, 2], y: [1, 2]}"
    ends = "() => (window.drawn = 'by WebGL'), (error) => (window.drawn = String(error))"
    # WebGL compiles code, which the pages' content security policy must allow. The policy does not
    # apply to an evaluated script, but does to its later callbacks.
    browser.evaluate(f"void setTimeout(() => Plotly.newPlot({graph}, [{many}]).then({ends}))")
    assert browser.wait_until("window.drawn") == "by WebGL"
    assert "WebGL is not supported" not in text(browser, "#scatter")


def test_pages_return_with_the_store(browser: Browser, grid: Path, link: str) -> None:
    trouble = "document.querySelector('#trouble')?.textContent"

    @contextmanager
    def store_away() -> Iterator[None]:
        away = (grid / "results.db").rename(grid / "away.db")
        try:
            yield
            browser.wait_until(f"{trouble}.includes('loads again by itself')")
        finally:
            away.rename(grid / "results.db")
        browser.wait_until(f"{trouble} === ''")

    browser.open(link, width=1280)
    browser.wait_until("document.querySelector('#overview table') !== null")
    with store_away():
        pass
    assert "gss_grid" in text(browser, "#overview table")
    with store_away():
        browser.open(f"{own_address(link)}/study/gss_grid-smoke-pydocs", width=1280)
    browser.wait_until(f"{POINTS} === 4 && document.querySelector('#chosen > *') !== null")
    with store_away():
        browser.evaluate(choose("spectra"))
    browser.wait_until(
        "document.querySelector('#chosen .ytitle')?.textContent === 'singular value'"
    )
    browser.wait_until(f"{POINTS} === 4")
