from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.command import ROOT
from tests.support.smoke_trials import smoke_plan, train_here

NOTEBOOK = ROOT / "docs" / "first-look.ipynb"


def kinds(notebook: nbformat.NotebookNode) -> list[list[str]]:
    return [
        sorted(
            kind
            for output in cell.outputs
            for kind in (output.get("data") or {output.output_type: ""})
        )
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_notebook_reproduces_its_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([os.fspath(ROOT), os.environ.get("PYTHONPATH", "")])
    )
    folder = tmp_path / "docs"
    folder.mkdir()
    # Trials trained in this process need no Ray. tests/end_to_end/test_from_python.py uses Ray.
    train_here(tmp_path / "results", smoke_plan("gss_grid", settings={"training.epochs": (8,)}))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    shown_kinds = kinds(notebook)
    assert sum("image/png" in cell for cell in shown_kinds) == 3
    assert sum("text/html" in cell for cell in shown_kinds) == 1
    executed = NotebookClient(
        notebook, timeout=240, resources={"metadata": {"path": str(folder)}}
    ).execute()
    assert kinds(executed) == shown_kinds
    assert (tmp_path / "results" / "results.db").exists()
    table = next(
        output
        for cell in executed.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "data" in output
    )
    assert table.data["text/plain"].count("done") == 4


def test_notebook_names_no_machine() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert "/tmp/" not in text and "/home/" not in text and "/root" not in text
