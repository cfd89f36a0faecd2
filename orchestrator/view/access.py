"""Who may see the pages: whoever has the link that was printed, from this machine alone."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from urllib.parse import urlencode

from flask import Flask, Response, abort, redirect, request
from werkzeug.wrappers import Response as AnyResponse

CLOSED = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
FILE_POLICY = f"{CLOSED}; style-src 'unsafe-inline'; img-src data:"
"""For a file of the storage, which may be a stranger's: SVG and XML can hold scripts too. No
sandbox: not every browser shows a PDF in one."""
REPORT_POLICY = (
    f"{FILE_POLICY}; script-src 'unsafe-inline'; "
    "sandbox allow-scripts allow-downloads allow-top-navigation-by-user-activation"
)
"""For an HTML page of the storage: it sorts its tables, and sees nothing of these pages."""
OWN_POLICY = (
    f"{CLOSED}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self' data:; connect-src 'self'; worker-src blob:; "
    "script-src 'self' 'unsafe-eval' "
)
"""Scripts are files of this server, and those whose hashes follow. They may compile code, as plotly
does for WebGL."""
REFUSED = "This page needs the link that `view` printed when it started: open that one."


def guard(server: Flask, token: str, script_hashes: Sequence[str]) -> None:
    """Answer 403 to every request without the token; the printed link puts it into a cookie and
    leaves the address. Limit what a browser may do with an answer."""

    @server.before_request
    def check() -> AnyResponse | None:
        # A browser sends the cookies of every port of a host to each of them.
        cookie = f"sweep-view-{request.environ['SERVER_PORT']}"
        if _same(request.args.get("token", ""), token):
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

    @server.after_request
    def harden(response: Response) -> Response:
        policy = OWN_POLICY + " ".join(script_hashes)
        if request.path.startswith("/report/"):
            policy = REPORT_POLICY if response.mimetype == "text/html" else FILE_POLICY
        response.headers["Content-Security-Policy"] = policy
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["X-Frame-Options"] = "DENY"
        return response


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(), token.encode())
