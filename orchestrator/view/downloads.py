"""Downloads: results as CSV and JSON, and reports."""

from __future__ import annotations

import io
from typing import Literal

from flask import Flask, Response, abort, request, send_from_directory
from werkzeug.wrappers import Response as AnyResponse

from orchestrator.analysis import flatten
from orchestrator.report import write_results
from orchestrator.view.source import Source
from trainables.errors import UserError


def register(server: Flask, source: Source) -> None:
    """Serve the addresses below /download and /report."""

    @server.get("/download/study/<variant>.<any(csv, json):form>")
    def study(variant: str, form: Literal["csv", "json"]) -> AnyResponse:
        key, text = source.study(variant).key, io.StringIO()
        with source.store() as opened:
            rows = opened.results(key, request.args.getlist("trial") or None)
        write_results(flatten(rows).of_variant(key), form, text)
        headers = {"Content-Disposition": "attachment"}  # browsers take the name from the URL
        kind = "text/csv" if form == "csv" else "application/json"
        return Response(text.getvalue(), mimetype=kind, headers=headers)

    @server.get("/report/<path:path>")
    def report(path: str) -> AnyResponse:
        folder = (source.storage.folder / "reports").resolve()
        if not (folder / path).resolve().is_relative_to(folder):
            abort(404)
        return send_from_directory(folder, path)

    @server.errorhandler(UserError)
    def refuse(error: UserError) -> AnyResponse:
        return Response(str(error), 404, mimetype="text/plain")
