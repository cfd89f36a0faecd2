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
from tests.support.store_rows import RUN, SPECTRUM, outcome
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
    store.fail(trials[2].trial_id, cause="RuntimeError: no", run_id=run_id)
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
    try:
        waiting = [f"{base}index.html"]
        while waiting:
            address = waiting.pop()
            try:
                with urlopen(address, timeout=10) as answer:
                    answers[address.removeprefix(base)] = answer.status
                    text = (
                        answer.read().decode(errors="replace") if address.endswith(".html") else ""
                    )
            except HTTPError as error:
                answers[address.removeprefix(base)] = error.code
                continue
            links = [link for link in Links(text).found if not link.startswith(("data:", "#"))]
            assert all("//" not in link and not link.startswith("/") for link in links), (
                "relative links alone"
            )
            found = {urljoin(address, link).partition("#")[0] for link in links}
            waiting += sorted(found - {base + known for known in answers} - set(waiting))
    finally:
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
    for path in copy.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert (
                str(tmp_path).encode() not in content and str(Path.cwd()).encode() not in content
            ), path
    assert not (tmp_path / "reports").exists(), "the storage's own reports are left alone"


def test_a_bundle_is_written_again(place: tuple[str, str], tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    command = ["report", "gss_grid", *place, "--bundle", str(bundle)]
    assert main(command) == main(command) == 0
    assert len(list(bundle.glob("*/report.html"))) == 1
    assert main([*command, "--set", "training.epochs=3"]) == 0
    assert len(list(bundle.glob("*/report.html"))) == 2 and set(crawl(bundle).values()) == {200}


def test_a_folder_with_something_else_in_it_is_left_alone(
    place: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.tex").write_text("mine")
    assert main(["report", "all", *place, "--bundle", str(full)]) == 2
    assert "holds something else: name another one" in " ".join(capsys.readouterr().err.split())
    assert [path.name for path in full.iterdir()] == ["thesis.tex"]
    (full / "thesis.tex").rename(full / "bundle.txt")
    assert main(["report", "all", *place, "--bundle", str(full)]) == 2
    assert (full / "bundle.txt").read_text() == "mine"
    (full / "bundle.txt").rename(full / "thesis.tex")
    elsewhere, bundle = tmp_path / "elsewhere", tmp_path / "made"
    elsewhere.mkdir()
    assert main(["report", "gss_grid", *place, "--bundle", str(bundle)]) == 0
    (folder,) = (page.parent for page in bundle.glob("*/report.html"))
    folder.rename(tmp_path / "away")
    folder.symlink_to(elsewhere)
    capsys.readouterr()
    assert main(["report", "gss_grid", *place, "--bundle", str(bundle)]) == 2
    assert list(elsewhere.iterdir()) == []
    assert main(["report", "gss_grid", *place, "--bundle", str(full / "thesis.tex")]) == 2
    assert main(["report", "rank_metrics", *place, "--bundle", str(tmp_path / "none")]) == 2
    assert not (tmp_path / "none").exists(), "nothing is made where there is nothing to report"
