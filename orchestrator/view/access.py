"""Who may see the pages: whoever has the link that was printed, from this machine alone."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from traceback import extract_tb
from urllib.parse import urlencode

from dash.exceptions import CallbackException
from flask import Flask, Response, abort, redirect, request
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as AnyResponse

REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads allow-top-navigation-by-user-activation; default-src "
    "'none'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; "
    "frame-ancestors 'none'"
)
"""Of a page that whoever writes to the storage has made: it sorts its tables, and sees nothing of
these pages."""
FILE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action "
    "'none'; "
    "frame-ancestors 'none'"
)
"""Of any other file from there: SVG and XML can hold scripts too. No sandbox: not every browser
shows a PDF in one."""
PAGES = Path(__file__).parent
REFUSED = "This page needs the link that `view` printed when it started: open that one."


def guard(server: Flask, token: str, port: int, script_hashes: Sequence[str]) -> None:
    """Answer 403 to every request without the token; the printed link puts it into a cookie and
    leaves the address. Answer 400, with one line in the log, to a request that fails before it
    reaches a page's code.

    No script runs but the pages' own: files of this server, and those of these hashes. These may
    compile code, as plotly does for WebGL."""
    cookie = f"sweep-view-{port}"
    own_policy = _own_policy(script_hashes)

    @server.before_request
    def check() -> AnyResponse | None:
        typed = request.args.get("token")
        if typed is not None and _same(typed, token):
            rest = urlencode(
                [(name, value) for name, value in request.args.items(multi=True) if name != "token"]
            )
            answer = redirect(f"{request.path}?{rest}" if rest else request.path)
            # Lax: the link may stand on another page, such as a notebook's; what another page posts
            # brings no cookie.
            answer.set_cookie(cookie, token, httponly=True, samesite="Lax")
            return answer
        if not _same(request.cookies.get(cookie, ""), token):
            abort(Response(REFUSED, 403, mimetype="text/plain"))
        return None

    @server.errorhandler(Exception)
    def refuse(error: Exception) -> AnyResponse | HTTPException:
        if isinstance(error, HTTPException):
            return error
        of_a_page = any(
            Path(frame.filename).parent == PAGES for frame in extract_tb(error.__traceback__)
        )
        if of_a_page or isinstance(error, CallbackException):
            raise error
        server.logger.warning("refused a malformed request (%s)", type(error).__name__)
        return Response("These pages send no such request.", 400, mimetype="text/plain")

    @server.after_request
    def harden(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = (
            _policy(request.path, response.mimetype) or own_policy
        )
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["X-Frame-Options"] = "DENY"
        return response


def _own_policy(script_hashes: Sequence[str]) -> str:
    scripts = " ".join(
        ["'self'", "'unsafe-eval'", *(f"'{value.strip(chr(39))}'" for value in script_hashes)]
    )
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src "
        f"'self' data: blob:; "
        "font-src 'self' data:; connect-src 'self'; worker-src blob:; base-uri 'none'; form-action "
        "'none'; "
        "frame-ancestors 'none'"
    )


def _policy(path: str, kind: str | None) -> str | None:
    """That of a file of the storage; None where the answer is these pages' own."""
    if not path.startswith("/report/"):
        return None
    return REPORT_POLICY if kind == "text/html" else FILE_POLICY


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(), token.encode())
