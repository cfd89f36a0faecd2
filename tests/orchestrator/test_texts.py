"""A study of published numbers goes on without the files that cannot be had."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator import texts
from orchestrator.plan import make_plan, scale_named
from search_spaces.catalog import load_study
from trainables.errors import UserError


def test_each_missing_text_is_said_and_none_stops_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def unreachable(name: str, data_dir: Path, **_: object) -> None:
        asked.append((name, data_dir))
        raise UserError(f"{name} cannot be had")

    monkeypatch.setattr(texts, "ensure", unreachable)
    monkeypatch.setattr(texts, "ensure_benchmarks", lambda folder, **_: unreachable("word-similarity", folder))
    plan = make_plan(load_study("published"), scale_named("quick"), "none", tmp_path, {})
    shown = io.StringIO()
    texts.ensure_texts(plan, Console(file=shown, width=200))
    assert asked == [("word-similarity", tmp_path), ("ptb", tmp_path), ("wikitext-2", tmp_path)]
    for name, _ in asked:
        assert f"{name} cannot be had; the study goes on without it." in shown.getvalue()
