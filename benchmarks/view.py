"""How fast `view` shows a store of 10,000 trials with 50 epochs each, and what it costs a sweep.

    python -m benchmarks.view pages [STORE_URL]    every page in a real Chromium: seconds until it
    shows what it is for,
                                                   and the memory of the server
    python -m benchmarks.view sweep                a real sweep with and without five viewers: the
    ratio of their times

Without a URL: a SQLite store in a temporary folder. A PostgreSQL store has to be an empty database.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import numpy as np

from orchestrator.store import PlannedTrial, RunRecord, StudyKey, open_store
from tests.support.browser import Browser
from trainables.config import CorpusConfig, GssConfig, TrialConfig
from trainables.errors import UserError
from trainables.trial_folder import EpochMetrics, TrialOutcome

KEY = StudyKey(study="gss_grid", scale="quick", corpus="pydocs")
CS, KS, SEEDS, EPOCHS, SINGULAR_VALUES = 40, 25, 10, 50, 500
"""10,000 trials."""
ROUNDS = 5
VIEWERS, LIVE_S, SWEEP_ROUNDS = 5, 3.0, 3
SWEEP = ("gss_grid", "--scale", "smoke", "--set", "training.epochs=180", "--max-concurrent", "2")
ROOT = Path(__file__).parents[1]
HEADERS = {"Content-Type": "application/json"}
VALUES: dict[str, Any] = {
    "study-x.value": "press_rank",
    "study-y.value": "test_perplexity",
    "study-scales.value": [],
    "chosen-tab.value": "learning curves",
    "spectra-scale.value": "logarithmic",
    "picture-format.value": "png",
    "brushed.data": [],
    "trials.getRowsRequest": {"startRow": 0, "endRow": 50, "sortModel": [], "filterModel": {}},
}
"""What an open page of the study sends of its parts."""
AT_TICK = {"overview.children", "study-progress.children", "study-answer.children"}
ON_CHANGE = {
    "study-version": {"scatter.figure", "trials.getRowsResponse", "chosen.children"},
    "study-epochs": {"chosen.children"},
}
"""What viewers ask for: always, and where one of these has changed."""
OF_TROUBLE = ("comes back by itself", "the statistics of ")
"""Words of it where it is no component of the class: in an empty figure, and in the place of a
study's answer."""


def fill(url: str) -> list[PlannedTrial]:
    """Record every trial as a driver does."""
    corpus, draws = CorpusConfig(name="pydocs", sha256="0" * 64), np.random.default_rng(0)
    cells = [
        (c, k) for c in np.linspace(-2, 2, CS).round(4) for k in np.linspace(1.25, 3, KS).round(4)
    ]
    configs = [
        TrialConfig(seed=seed, corpus=corpus, output_layer=GssConfig(c=float(c), k=float(k)))
        for seed in range(1, SEEDS + 1)
        for c, k in cells
    ]
    layers = [(config.output_layer.c, config.output_layer.k) for config in configs]  # type: ignore[union-attr]
    names = [
        f"gss c={c:g} k={k:g} seed={config.seed}"
        for (c, k), config in zip(layers, configs, strict=True)
    ]
    trials = [PlannedTrial.of(config, name) for config, name in zip(configs, names, strict=True)]
    with open_store(url) as store:
        store.register(KEY, trials)
        run_id = store.begin_run(
            RunRecord(
                code_version="0",
                packages={},
                host="benchmark",
                device="cpu",
                corpus_sha256="0" * 64,
            )
        )
        store.claim([trial.trial_id for trial in trials], owner="benchmark:1:1", lease_s=36_000)
        for trial in trials:
            spectrum = np.sort(np.abs(draws.normal(size=SINGULAR_VALUES)))[::-1] * 1e3
            store.record(_outcome(trial.trial_id, draws), run_id=run_id, spectrum=spectrum)
        store.end_run(run_id)
    return trials


def _outcome(trial_id: str, draws: np.random.Generator) -> TrialOutcome:
    loss, rank = 5 + 0.05 * draws.normal(), int(draws.integers(100, 400))
    epochs = tuple(
        EpochMetrics(
            epoch=number,
            tokens=1000 * number,
            train_loss=float(loss + 2 / number),
            valid_loss=float(loss + 2.1 / number + 0.01 * draws.normal()),
            averaging=number > 0.7 * EPOCHS,
            seconds=1.0,
        )
        for number in range(1, EPOCHS + 1)
    )
    perplexity = float(np.exp(loss))
    measurements = {
        "perplexity@1": {
            **{
                f"{split}_perplexity": perplexity + place
                for place, split in enumerate(("train", "valid", "test"))
            },
            **dict.fromkeys(
                ("parameters", "seconds", "seconds_per_epoch", "peak_memory_mib"), 1000.0
            ),
        },
        "spectrum@1": {
            **dict.fromkeys(
                ("press_rank", "effective_rank_1e-3", "effective_rank_1e-4", "rank_rows"), rank
            ),
            **dict.fromkeys(
                ("entropy_rank", "stable_rank", "sigma_max", "press_tolerance"), rank / 10
            ),
        },
    }
    return TrialOutcome(trial_id=trial_id, state="done", epochs=epochs, measurements=measurements)


@contextmanager
def _viewed(*options: str) -> Iterator[tuple[str, int]]:
    """The pages; yields the link and the id of the process that serves them."""
    command = [sys.executable, str(ROOT / "sweep.py"), "view", *options]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        link = re.search(r"http\S+", process.stdout.readline())
        assert link is not None
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        yield link.group(), int(children[0])
    finally:
        process.terminate()
        process.wait()


def pages(url: str) -> None:
    """Print the seconds of every page, first and median of the others, and the server's memory."""
    trials = fill(url)
    with (
        _viewed("--store", url) as (link, pid),
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
    ):
        address = link.partition("/?")[0]
        with Browser(Path(profile)) as browser:
            browser.open(link, width=1280)
            for path, shown in _pages(trials).items():
                seconds = [_seconds(browser, address + path, shown) for _ in range(ROUNDS)]
                print(
                    f"{path.partition('?')[0][:40]:<42}{seconds[0]:>7.2f} "
                    f"s{statistics.median(seconds[1:]):>9.2f} s"
                )
        status = Path(f"/proc/{pid}/status").read_text()
        print("server: " + ", ".join(re.findall(r"Vm(?:HWM|RSS):\s+\d+ kB", status)))


def _pages(trials: list[PlannedTrial]) -> dict[str, str]:
    """By their paths, what shows that they have come."""
    ids = [trial.trial_id[:12] for trial in trials[:6]]
    return {
        "/": "document.querySelector('#overview table')",
        f"/study/{KEY.variant}": "document.querySelector('#scatter canvas') && "
        "document.querySelector('#chosen-figure .scatterlayer') && "
        "document.querySelector('#trials .ag-center-cols-container .ag-row')",
        f"/trial/{ids[0]}": "document.querySelector('#trial-sigma .scatterlayer')",
        "/compare?"
        + "&".join(
            f"trial={start}" for start in ids
        ): "document.querySelector('#compare-spectra .scatterlayer')",
    }


def _seconds(browser: Browser, address: str, shown: str) -> float:
    start = time.perf_counter()
    browser.open(address, width=1280)
    browser.wait_until(f"Boolean({shown})", timeout_s=60)
    return time.perf_counter() - start


def sweep() -> None:
    """Print the seconds of a sweep alone and beside five viewers of its study, round by round, and
    the ratio."""
    alone, beside = [], []
    for _ in range(SWEEP_ROUNDS):
        with tempfile.TemporaryDirectory() as storage:
            alone.append(_sweep_seconds(storage))
        with tempfile.TemporaryDirectory() as storage, _viewers(storage) as pid:
            before = _processor_seconds(pid)
            beside.append(_sweep_seconds(storage))
            server, answers = (
                now - then for now, then in zip(_processor_seconds(pid), before, strict=True)
            )
        print(
            f"alone {alone[-1]:.2f} s, beside {VIEWERS} viewers {beside[-1]:.2f} s; processor: the "
            f"server "
            f"{server:.2f} s, what it starts for answers {answers:.2f} s",
            flush=True,
        )
    print(f"ratio of the medians {statistics.median(beside) / statistics.median(alone):.3f}")


def _sweep_seconds(storage: str) -> float:
    """Of the whole command."""
    start = time.perf_counter()
    command = [sys.executable, str(ROOT / "sweep.py"), *SWEEP, "--storage", storage]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


@contextmanager
def _viewers(storage: str) -> Iterator[int]:
    """Five that look at the study as soon as the store has it; yields the id of the process that
    serves them."""
    open_store(str(Path(storage) / "results.db")).close()
    over = threading.Event()
    with _viewed("--storage", storage) as (link, pid), ThreadPoolExecutor(VIEWERS) as pool:
        looks = [pool.submit(_look, link, storage, over) for _ in range(VIEWERS)]
        try:
            yield pid
        finally:
            over.set()
        for look in looks:
            look.result()


def _processor_seconds(pid: int) -> tuple[float, float]:
    """Of the process, and of those that it had started and that are over."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = [int(number) / os.sysconf("SC_CLK_TCK") for number in fields[11:15]]
    return sum(ticks[:2]), sum(ticks[2:])


def _variant(storage: str, over: threading.Event) -> str:
    """Of the sweep's study, as soon as the store has it."""
    while not over.wait(LIVE_S):
        with (
            suppress(UserError),
            open_store(str(Path(storage) / "results.db"), create=False) as store,
        ):
            for summary in store.progress():
                return summary.key.variant
    raise UserError("the sweep ended without a study: look at its output")


def _look(link: str, storage: str, over: threading.Event) -> None:
    """Ask for what an open overview and an open page of the study ask for: at every tick how far
    they are; where an epoch has ended its learning curves; where a trial has, its figure and the
    first rows of its table too. A browser's work is its machine's."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    opener.open(link).read()
    address = link.partition("/?")[0]
    callbacks = {
        output: callback
        for callback in json.load(opener.open(f"{address}/_dash-dependencies"))
        for output in _outputs(callback)
    }
    values = VALUES | {"study-variant.data": _variant(storage, over)}

    def changes(wanted: str) -> dict[str, Any]:
        body = _body(callbacks[wanted], values)
        answer = opener.open(
            urllib.request.Request(f"{address}/_dash-update-component", body, HEADERS)
        ).read()
        changed = _changes(answer)
        values.update(
            {f"{name}.data": change["data"] for name, change in changed.items() if "data" in change}
        )
        return changed

    while not over.wait(LIVE_S):
        news = {name for wanted in AT_TICK for name in changes(wanted)} & ON_CHANGE.keys()
        for wanted in set[str]().union(*(ON_CHANGE[name] for name in news)):
            changes(wanted)


def _changes(answer: bytes) -> dict[str, Any]:
    """By output what it is now. Raises UserError where that is trouble, as with a store that is
    locked."""
    changed: dict[str, Any] = (
        json.loads(answer)["response"] if answer else {}
    )  # of nothing new there is none
    for told in _troubles(changed):
        raise UserError(f"a viewer was told: {told}")
    return changed


def _troubles(part: Any) -> Iterator[str]:
    """What a part of an answer says of trouble."""
    if isinstance(part, dict):
        if part.get("className") == "trouble":
            yield str(part["children"])
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            yield from _troubles(one)
    elif isinstance(part, str) and any(words in part for words in OF_TROUBLE):
        yield part


def _outputs(callback: dict[str, Any]) -> list[str]:
    return str(callback["output"]).strip(".").split("...")


def _body(callback: dict[str, Any], values: dict[str, Any]) -> bytes:
    """As the page sends it."""
    outputs = [
        dict(zip(("id", "property"), output.rsplit(".", 1), strict=True))
        for output in _outputs(callback)
    ]
    asked = {
        kind: [
            {**one, "value": values.get(f"{one['id']}.{one['property']}")} for one in callback[kind]
        ]
        for kind in ("inputs", "state")
    }
    several = callback["output"].startswith("..")
    changed = [f"{one['id']}.{one['property']}" for one in callback["inputs"][:1]]
    content = {"output": callback["output"], "outputs": outputs if several else outputs[0], **asked}
    return json.dumps({**content, "changedPropIds": changed}).encode()


def main() -> None:
    """Measure what is named."""
    if sys.argv[1:2] == ["sweep"]:
        sweep()
    elif sys.argv[2:]:
        pages(sys.argv[2])
    else:
        with tempfile.TemporaryDirectory() as folder:
            pages(str(Path(folder) / "results.db"))


if __name__ == "__main__":
    main()
