from __future__ import annotations

import multiprocessing
import signal
import time
from pathlib import Path

import pytest

from orchestrator.report import CARD_FILE
from orchestrator.store import Store
from orchestrator.sweep import Typed, live_report
from tests.support.command import wait_for
from tests.support.store_rows import KEY, RUN, ids, outcome, plan


@pytest.mark.timeout(120)
def test_report_follows_ended_trials(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.sweep.live_reports.EVERY_S", 0.2)
    store.register(KEY, plan(2))
    store.claim(ids(plan(2)), owner="a", lease_s=60)
    card = tmp_path / "reports" / KEY.variant / CARD_FILE
    url, typed = str(tmp_path / "results.db"), Typed(study=KEY.study)
    with live_report(store, url, str(tmp_path), KEY, typed):
        time.sleep(1)
        assert multiprocessing.active_children() == []
        store.record(outcome(ids(plan(2))[0]), run_id=store.begin_run(RUN), spectrum=None)
        wait_for(card.exists, timeout_s=100, event="the report")
        assert (tmp_path / "reports" / "index.html").exists() or multiprocessing.active_children()
    assert multiprocessing.active_children() == []
    assert "1 of 2 trials is done" in card.read_text()


def write_for_ever(_: str, storage: str, *__: object) -> None:
    """Block SIGTERM, as a spawned process does when it imports the installed command."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    (Path(storage) / "began").touch()
    time.sleep(60)


def test_report_delays_no_end(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.sweep.live_reports.EVERY_S", 0.1)
    monkeypatch.setattr("orchestrator.sweep.live_reports._write", write_for_ever)
    with live_report(store, "", str(tmp_path), KEY, Typed(study=KEY.study)):
        store.register(KEY, plan(1))
        wait_for((tmp_path / "began").exists, timeout_s=100, event="the process")
        start_s = time.monotonic()
    assert time.monotonic() - start_s < 8
