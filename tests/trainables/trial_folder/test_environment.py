"""Which code a result says it comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainables.trial_folder import environment


def test_outside_a_checkout_the_code_is_what_the_image_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "__file__", str(tmp_path / "environment.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.delenv("SWEEPS_CODE_VERSION", raising=False)
    assert environment.code_version.__wrapped__() == "unknown"
    monkeypatch.setenv("SWEEPS_CODE_VERSION", "0123456789ab")
    assert environment.code_version.__wrapped__() == "0123456789ab"
