"""Tests of the pages behind a real reverse proxy, in a real Chromium."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from orchestrator.store import StudyKey, open_store
from tests.end_to_end.conftest import text, viewed
from tests.end_to_end.test_view import POINTS, act_until
from tests.support.browser import Browser
from tests.support.command import sweep
from tests.support.reverse_proxy import Proxy, free_port, nginx, python_proxy
from tests.support.store_rows import RUN, SPECTRUM, epoch, ids, outcome, planned

KEY = StudyKey(study="mine", scale="smoke", corpus="pydocs")
TRIALS = [
    planned(seed, group=group, name=f"{group} seed={seed}")
    for group in ("softmax", "mos")
    for seed in (1, 2)
]
"""Two settings with two seeds each. The last trial has no spectrum, as a user's own have none."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served")
    report = folder / "reports" / KEY.variant / "report.html"
    report.parent.mkdir(parents=True)
    report.write_text("<h1>A report</h1>")
    with open_store(str(folder / "results.db")) as store:
        store.register(KEY, TRIALS)
        store.claim(ids(TRIALS), owner="a", lease_s=60)
        run_id = store.begin_run(RUN)
        for number, trial_id in enumerate(ids(TRIALS)):
            epochs = tuple(epoch(n, valid_loss=5 - n / 10 + number / 20) for n in range(1, 6))
            measured = {"perplexity@1": {"valid_perplexity": 100.0 + number}}
            has_spectrum = number < len(TRIALS) - 1
            if has_spectrum:
                measured["spectrum@1"] = {"press_rank": 10.0 + number}
            ended = outcome(trial_id, measurements=measured).model_copy(update={"epochs": epochs})
            spectrum = SPECTRUM if has_spectrum else None
            store.record(ended, run_id=run_id, spectrum=spectrum, attempt=1)
    with viewed(folder, "--prefix", f"/user/m%40x.org/proxy/{free_port()}") as link:
        yield link


def click(browser: Browser, selector: str) -> None:
    browser.wait_until(f"document.querySelector({selector!r}) !== null")
    browser.evaluate(f"document.querySelector({selector!r}).click()")


def fetched(browser: Browser, selector: str) -> str:
    browser.wait_until(f"document.querySelector({selector!r}) !== null")
    address = f"document.querySelector({selector!r}).href"
    read = "(answer) => answer.text()).then((text) => { window.fetched = text; }"
    browser.evaluate(f"window.fetched = ''; void fetch({address}).then({read})")
    return str(browser.wait_until("window.fetched"))


@pytest.mark.parametrize("strips", [True, False], ids=["strips", "passes"])
@pytest.mark.parametrize("proxy", [python_proxy, nginx])
def test_pages_stay_below_the_prefix(
    browser: Browser, served: str, tmp_path: Path, proxy: Proxy, strips: bool
) -> None:
    link = urlsplit(served)
    prefix = link.path.rstrip("/")
    assert link.port is not None and prefix.endswith(f"/{link.port}"), "the default port"
    with proxy(link.port, prefix, strips, tmp_path) as origin:
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{origin}{prefix}/", timeout=10)
        assert refused.value.code == 403 and refused.value.headers["X-Frame-Options"] == "DENY"
        browser.call("Network.clearBrowserCookies")
        browser.open(f"{origin}{prefix}/?{link.query}", width=1280)
        click(browser, "#overview table a")
        browser.wait_until(f"{POINTS} === 3")
        assert browser.evaluate("location.pathname") == f"{prefix}/study/{KEY.variant}"
        bands = "document.querySelectorAll('#chosen .scatterlayer .js-fill').length"
        browser.wait_until(f"{bands} === 2 && document.querySelector('.tabs').offsetHeight > 0")
        assert "mean over the seeds" in text(browser, "#chosen-words")
        model = json.dumps({"group": {"filterType": "text", "type": "equals", "filter": "mos"}})
        script = f"dash_ag_grid.getApi('trials').setFilterModel({model})"
        act_until(browser, lambda *_: browser.evaluate(script), f"{POINTS} === 1 && {bands} === 1")
        assert fetched(browser, "#study-links a[href*='.csv']").count("\n") == 1 + len(TRIALS)
        assert "A report" in fetched(browser, "#study-links a[target]")
        act_until(browser, browser.click_at, f"location.pathname.startsWith('{prefix}/trial/')")
        browser.wait_until("document.querySelectorAll('#curves .js-line').length > 0")
        seen = "getComputedStyle(document.querySelector('#spectra')).visibility"
        browser.wait_until(f"{seen} === 'visible'")
        assert text(browser, "#trials-head h1") == "mos seed=1"
        click(browser, "#trials-head a[href*='/study/']")
        click(browser, f"#trials a[href*='{TRIALS[-1].trial_id[:12]}']")
        browser.wait_until("document.querySelectorAll('#curves .js-line').length > 0")
        assert browser.evaluate(seen) == "hidden", "this trial has no spectrum"
        click(browser, ".home")
        browser.wait_until("document.querySelector('#overview table') !== null")
        assert browser.evaluate("location.pathname") == f"{prefix}/"
        cookies: Any = browser.call("Network.getCookies", urls=[f"{origin}{prefix}/"])["cookies"]
        assert [cookie["path"] for cookie in cookies] == [prefix]
        urls = [url for url in browser.requests() if not url.startswith(("data:", "blob:"))]
        assert [url for url in urls if not url.startswith(f"{origin}{prefix}/")] == []
        assert browser.complaints() == []


@pytest.mark.parametrize("prefix", ["user/me", "/a/../b", "/a?x=1", "/a b", "/a/%2e%2E", "//a"])
def test_wrong_prefix_gets_one_sentence(prefix: str, tmp_path: Path) -> None:
    answer = sweep("view", "--prefix", prefix, "--storage", tmp_path)
    assert answer.returncode == 2 and "--prefix" in answer.stderr
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize("host", ["no such host", "192.0.2.1"])
def test_foreign_host_gets_one_sentence(host: str, tmp_path: Path) -> None:
    open_store(str(tmp_path / "results.db")).close()
    answer = sweep("view", "--host", host, "--storage", tmp_path)
    assert answer.returncode == 2 and "--host" in answer.stderr
    assert answer.stderr.count("\n") == 1
