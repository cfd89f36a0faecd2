"""Files that the pages link to: results as CSV and JSON, a trial's config, the reports of the
storage."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from flask import Flask, Response, abort, request, send_from_directory
from werkzeug.wrappers import Response as AnyResponse

from orchestrator.analysis import flatten
from orchestrator.report import CONFIG_FILE, write_results
from orchestrator.view.source import Source
from trainables.errors import UserError


def register(server: Flask, source: Source) -> None:
    """Answer the addresses below /download and /report."""

    @server.get("/download/study/<variant>.<any(csv, json):form>")
    def study(variant: str, form: Literal["csv", "json"]) -> AnyResponse:
        with _answering():
            key, text = source.study(variant).key, io.StringIO()
            with source.store() as opened:
                results = flatten(
                    opened.results(key, request.args.getlist("trial") or None)
                ).of_variant(key)
            write_results(results, form, text)
        return _file(text.getvalue(), f"{key.variant}.{form}")

    @server.get("/download/trial/<start>.json")
    def config(start: str) -> AnyResponse:
        with _answering():
            trial_id, keys = source.trial(start)
            with source.store() as opened:
                (row,) = opened.results(keys[0], [trial_id])
        return _file(json.dumps(row["config"], indent=1) + "\n", CONFIG_FILE)

    @server.get("/report/<path:path>")
    def report(path: str) -> AnyResponse:
        folder = (source.storage.folder / "reports").resolve()
        if not (folder / path).resolve().is_relative_to(folder):
            abort(404)
        return send_from_directory(folder, path)


@contextmanager
def _answering() -> Iterator[None]:
    """Answer 404 with the sentence of a UserError."""
    try:
        yield
    except UserError as error:
        abort(Response(str(error), 404, mimetype="text/plain"))


def _file(text: str, name: str) -> AnyResponse:
    kind = "text/csv" if name.endswith(".csv") else "application/json"
    return Response(
        text, mimetype=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
