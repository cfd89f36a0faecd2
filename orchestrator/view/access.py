"""Who may see the pages: whoever has the link that was printed, from this machine alone."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from flask import Flask, Response, abort, redirect, request
from werkzeug.wrappers import Response as AnyResponse

REFUSED = "This page needs the link that `view` printed when it started: open that one."


def guard(server: Flask, token: str, port: int, script_hashes: Sequence[str]) -> None:
    """Answer 403 to every request without the token; the printed link puts it into a cookie and leaves the address.

    No script runs but the pages' own: files of this server, and those of these hashes. These may compile code, as
    plotly does for WebGL.
    """
    cookie = f"sweep-view-{port}"
    scripts = " ".join(["'self'", "'unsafe-eval'", *(f"'{value.strip(chr(39))}'" for value in script_hashes)])
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "font-src 'self' data:; connect-src 'self'; worker-src blob:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )

    @server.before_request
    def check() -> AnyResponse | None:
        typed = request.args.get("token")
        if typed is not None and _same(typed, token):
            answer = redirect(request.path)
            answer.set_cookie(cookie, token, httponly=True, samesite="Strict")
            return answer
        if not _same(request.cookies.get(cookie, ""), token):
            abort(Response(REFUSED, 403, mimetype="text/plain"))
        return None

    @server.after_request
    def harden(response: Response) -> Response:
        # A report's page has a policy of its own, which is stricter.
        if not request.path.startswith("/report/"):
            response.headers["Content-Security-Policy"] = policy
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["X-Frame-Options"] = "DENY"
        return response


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(), token.encode())
