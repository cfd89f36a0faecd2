"""Who may see the pages: whoever has the link that was printed, from this machine alone."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from urllib.parse import urlencode

from flask import Flask, Response, abort, redirect, request
from werkzeug.wrappers import Response as AnyResponse

REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads allow-top-navigation-by-user-activation; default-src 'none'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""Of a file that whoever writes to the storage has made: it sorts its tables, and sees nothing of these pages."""
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
            rest = urlencode([(name, value) for name, value in request.args.items(multi=True) if name != "token"])
            answer = redirect(f"{request.path}?{rest}" if rest else request.path)
            # Lax: the link may stand on another page, such as a notebook's; what another page posts brings no cookie.
            answer.set_cookie(cookie, token, httponly=True, samesite="Lax")
            return answer
        if not _same(request.cookies.get(cookie, ""), token):
            abort(Response(REFUSED, 403, mimetype="text/plain"))
        return None

    @server.after_request
    def harden(response: Response) -> Response:
        is_report = request.path.startswith("/report/") and response.mimetype == "text/html"
        response.headers["Content-Security-Policy"] = REPORT_POLICY if is_report else policy
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["X-Frame-Options"] = "DENY"
        return response


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(), token.encode())
