"""Tests of the study page in a real Chromium. They write trial results to the store themselves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from orchestrator.store import PlannedTrial, Store, StudyKey, open_store
from tests.end_to_end.conftest import own_address, viewed
from tests.end_to_end.test_view import POINTS, act_until, places_at_rest
from tests.support.browser import Browser
from tests.support.store_rows import RUN, outcome, planned

GROUPS = ("mos", "<b>gss</b>", "softmax")
TABLE = "document.querySelector('#trials-shown').textContent"


@dataclass
class Page:
    browser: Browser
    store: Store
    trials: list[PlannedTrial]

    def choose(self, **axes: str) -> None:
        for name, column in axes.items():
            self.browser.evaluate(
                f"dash_clientside.set_props('study-{name}', {{value: {column!r}}})"
            )

    def drag(self, *corners: tuple[float, float]) -> None:
        """Drag in the scatter plot. Coordinates are fractions of the plot's width and height."""
        scatter = "document.querySelector('#scatter .nsewdrag')"
        rectangle = self.browser.evaluate(f"{scatter}.getBoundingClientRect().toJSON()")
        left, top, width, height = (rectangle[side] for side in ("x", "y", "width", "height"))
        (x0, y0), (x1, y1) = ((left + x * width, top + y * height) for x, y in corners)
        time.sleep(0.4)  # for a figure, two presses within 0.3 s are a double click
        self.browser.mouse("mouseMoved", x0, y0)
        self.browser.mouse("mousePressed", x0, y0)
        for step in (0.3, 0.7, 1):
            self.browser.mouse(
                "mouseMoved", x0 + step * (x1 - x0), y0 + step * (y1 - y0), buttons=1
            )
            time.sleep(0.15)  # the figure checks the box's contents ten times a second
        self.browser.mouse("mouseReleased", x1, y1)

    def drag_until(self, expression: str, *corners: tuple[float, float]) -> None:
        act_until(self.browser, lambda *_: self.drag(*corners), expression)

    def end(self, trial: PlannedTrial, number: int) -> None:
        self.store.claim([trial.trial_id], owner="a", lease_s=60)
        measured = {
            "perplexity@1": {"test_perplexity": 100.0 + number},
            "spectrum@1": {"press_rank": 10 * number, "entropy_rank": 7 * number},
        }
        ended = outcome(trial.trial_id, measurements=measured)
        self.store.record(ended, run_id=self.store.begin_run(RUN), spectrum=None, attempt=1)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, str]]:
    folder = tmp_path_factory.mktemp("served")
    with open_store(str(folder / "results.db")) as store, viewed(folder) as link:
        yield store, link


@pytest.fixture
def page(browser: Browser, served: tuple[Store, str], request: pytest.FixtureRequest) -> Page:
    store, link = served
    key = StudyKey(study=request.node.name, scale="smoke", corpus="pydocs")
    seeds = range(3 * len(store.studies()), 3 + 3 * len(store.studies()))
    trials = [planned(seed, group=group) for group in GROUPS for seed in seeds]
    opened_page = Page(browser, store, trials)
    store.register(key, trials)
    for number, trial in enumerate(trials[:7]):
        opened_page.end(trial, number)
    browser.open(link, width=1280)
    browser.open(f"{own_address(link)}/study/{key.variant}", width=1280)
    browser.wait_until(f"{POINTS} === 7 && {TABLE} === '9 of 9 trials'")
    browser.wait_until("document.querySelector('#study-progress') !== null")
    places_at_rest(browser)
    return opened_page


def test_box_over_categories_filters_table(page: Page) -> None:
    page.choose(x="group", y="test_perplexity", colour="seed")
    ticks = "[...document.querySelectorAll('#scatter .xtick')].map((t) => t.textContent)"
    page.browser.wait_until(f"{ticks}.join() === 'mos,<b>gss</b>,softmax'")
    for left, right, count in (
        (0.4, 0.6, 3),
        (0.25, 0.3, 0),
        (0.02, 0.98, 7),
    ):
        page.drag_until(f"{TABLE} === '{count} of 9 trials'", (left, 0.01), (right, 0.99))
    answers = [
        e["params"]["response"]
        for e in page.browser.events
        if e.get("method") == "Network.responseReceived"
    ]
    assert [answer["url"] for answer in answers if answer["status"] >= 400] == []


def now(browser: Browser, graph: str, *parts: str) -> list[Any]:
    figure = f"document.querySelector('#{graph} .js-plotly-plot')"
    return list(
        browser.evaluate(
            f"JSON.parse(JSON.stringify([{', '.join(f'{figure}.{part}' for part in parts)}]))"
        )
    )


def wait_for_part(browser: Browser, graph: str, part: str) -> None:
    browser.wait_until(f"document.querySelector('#{graph} .js-plotly-plot').{part}")


def zoom(browser: Browser, graph: str, x: list[float], y: list[float]) -> None:
    ranges = f"{{'xaxis.range': {x}, 'yaxis.range': {y}}}"
    browser.evaluate(
        f"void Plotly.relayout(document.querySelector('#{graph} .js-plotly-plot'), {ranges})"
    )


def test_zoom_stays_when_trial_ends(page: Page) -> None:
    page.choose(x="press_rank", y="test_perplexity", colour="group")
    page.browser.wait_until(
        "document.querySelector('#scatter .xtitle').textContent === 'Press rank'"
    )
    page.drag_until(f"{TABLE} === '4 of 9 trials'", (0.25, 0.01), (0.8, 0.99))
    zoom(page.browser, "scatter", [5, 55], [101, 105])
    parts = ("layout.xaxis.range", "layout.yaxis.range", "layout.selections")
    before = now(page.browser, "scatter", *parts)
    assert before[:2] == [[5, 55], [101, 105]] and len(before[2]) == 1
    page.end(page.trials[7], 4)
    page.browser.wait_until(f"{TABLE} === '5 of 9 trials'")
    wait_for_part(page.browser, "scatter", "data[2].hovertext.length === 2")
    assert now(page.browser, "scatter", *parts) == before
    page.choose(x="entropy_rank")
    wait_for_part(page.browser, "scatter", "layout.xaxis.title.text === 'entropy rank'")
    assert now(page.browser, "scatter", "layout.xaxis.range")[0] != before[0], (
        "the old range belonged to other axes"
    )
