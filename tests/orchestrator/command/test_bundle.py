"""A bundle of reports, copied elsewhere and served by another program than ours."""

from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urljoin
from urllib.request import urlopen

import pytest

from orchestrator.command.app import main
from orchestrator.store import PlannedTrial, Store, StudyKey
from tests.support.store_rows import RUN, SPECTRUM, fail, outcome
from trainables.config import CorpusConfig, GssConfig, TrialConfig

KEY = StudyKey(study="gss_grid", scale="quick", corpus="pydocs")


@pytest.fixture
def place(store: Store, tmp_path: Path) -> tuple[str, str]:
    """The storage of a store with two variants of a study."""
    corpus = CorpusConfig(name="pydocs", sha256="0" * 64)
    trials = [
        PlannedTrial.of(
            TrialConfig(seed=1, corpus=corpus, output_layer=GssConfig(c=c, k=2.0)),
            f"gss c={c:g} k=2",
        )
        for c in (0.0, 1.0, 2.0)
    ]
    for key in (KEY, replace(KEY, overrides='{"settings":{"training.epochs":[3]}}')):
        store.register(key, trials)
    run_id = store.begin_run(RUN)
    for trial in trials[:2]:
        store.record(outcome(trial.trial_id), run_id=run_id, spectrum=SPECTRUM)
    fail(store, trials[2].trial_id, cause="RuntimeError: no", run_id=run_id)
    return "--storage", str(tmp_path)


class Links(HTMLParser):
    """Where a page leads, and what it loads."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del tag
        self.found |= {
            value for name, value in attrs if name in ("href", "src", "xlink:href") and value
        }


class Quiet(SimpleHTTPRequestHandler):
    """Without a line for each request."""

    def log_message(self, format: str, *args: object) -> None:
        del format, args


def crawl(folder: Path) -> dict[str, int]:
    """The status of every address that index.html leads to, at once or by way of other pages."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base, answers = f"http://127.0.0.1:{server.server_port}/", dict[str, int]()
    waiting = [f"{base}index.html"]
    while waiting:
        address = waiting.pop()
        name = address.removeprefix(base)
        try:
            with urlopen(address, timeout=10) as answer:
                answers[name], content = answer.status, answer.read()
        except HTTPError as error:
            answers[name] = error.code
            continue
        page = content.decode() if name.endswith(".html") else ""
        links = [link for link in Links(page).found if not link.startswith(("data:", "#"))]
        assert not any("//" in link or link.startswith("/") for link in links), "relative links"
        found = {urljoin(address, link).partition("#")[0] for link in links}
        waiting += sorted(found - {base + known for known in answers} - set(waiting))
    server.shutdown()
    server.server_close()
    return answers


def test_every_link_of_a_copied_bundle_works(place: tuple[str, str], tmp_path: Path) -> None:
    made = tmp_path / "a bundle"
    assert main(["report", "all", *place, "--bundle", str(made)]) == 0
    copy = shutil.copytree(made, tmp_path / "elsewhere" / "x")
    shutil.rmtree(made)
    answers = crawl(copy)
    assert set(answers.values()) == {200}
    pages = {str(path.relative_to(copy)) for path in copy.rglob("*.html")}
    assert {path for path in answers if path.endswith(".html")} == pages and len(pages) == 1 + 2 * (
        1 + 3
    )
    contents = [path.read_bytes() for path in copy.rglob("*") if path.is_file()]
    for here in (tmp_path, Path.cwd()):
        assert not any(str(here).encode() in content for content in contents)
    assert not (tmp_path / "reports").exists(), "the storage's own reports are left alone"


def test_a_bundle_is_written_again(place: tuple[str, str], tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    command = ["report", "gss_grid", *place, "--bundle", str(bundle)]
    assert main(command) == main(command) == 0
    assert len(list(bundle.glob("*/report.html"))) == 1
    assert main([*command, "--set", "training.epochs=3"]) == 0
    assert len(list(bundle.glob("*/report.html"))) == 2 and set(crawl(bundle).values()) == {200}


def test_other_folders_are_left_alone(place: tuple[str, str], tmp_path: Path) -> None:
    def refused(folder: Path) -> bool:
        return main(["report", "gss_grid", *place, "--bundle", str(folder)]) == 2

    full = tmp_path / "full"
    full.mkdir()
    for name in ("thesis.tex", "bundle.txt"):
        (full / name).write_text("mine")
        assert refused(full) and (full / name).read_text() == "mine"
        assert [path.name for path in full.iterdir()] == [name]
        assert refused(full / name)
        (full / name).unlink()


def test_a_bundle_with_a_link_in_it_is_left_alone(place: tuple[str, str], tmp_path: Path) -> None:
    elsewhere, bundle = tmp_path / "elsewhere", tmp_path / "made"
    elsewhere.mkdir()
    command = ["report", "gss_grid", *place, "--bundle", str(bundle)]
    assert main(command) == 0
    (folder,) = (page.parent for page in bundle.glob("*/report.html"))
    folder.rename(tmp_path / "away")
    folder.symlink_to(elsewhere)
    assert main(command) == 2 and list(elsewhere.iterdir()) == []


def test_without_anything_to_report_no_bundle_is_made(
    place: tuple[str, str], tmp_path: Path
) -> None:
    bundle = str(tmp_path / "none")
    assert main(["report", "rank_metrics", *place, "--bundle", bundle]) == 2
    assert main(["report", "gss_grid", *place, "--bundle", bundle, "--out", bundle]) == 2
    assert not (tmp_path / "none").exists()
