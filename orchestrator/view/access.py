"""Access to the pages: only with the printed link, only from this host."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from urllib.parse import urlencode

from flask import Flask, Response, abort, redirect, request
from werkzeug.wrappers import Response as AnyResponse

BASE_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
FILE_POLICY = f"{BASE_POLICY}; style-src 'unsafe-inline'; img-src data:"
"""Policy for files of the storage. It blocks scripts, which an SVG or XML file may contain. It has
no sandbox, because some browsers cannot show a PDF in one."""
REPORT_POLICY = (
    f"{FILE_POLICY}; script-src 'unsafe-inline'; "
    "sandbox allow-scripts allow-downloads allow-top-navigation-by-user-activation"
)
"""Policy for HTML reports. It allows the scripts that sort tables. Its sandbox keeps them away from
other pages."""
PAGE_POLICY = (
    f"{BASE_POLICY}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self' data:; connect-src 'self'; worker-src blob:; "
    "script-src 'self' 'unsafe-eval' "
)
"""Policy for the pages. It allows scripts from this server, and scripts whose hash is appended.
'unsafe-eval' is for plotly's WebGL figures."""
REFUSAL = "Open the link that `view` printed when it started. It gives access to this page."


def guard(server: Flask, token: str, script_hashes: Sequence[str], prefix: str = "") -> None:
    """Answer 403 to requests without the token, and limit what browsers may do with answers.

    The printed link stores the token in a cookie for `prefix` and redirects to an address without
    it.
    """

    @server.before_request
    def check() -> AnyResponse | None:
        # All ports of a host share cookies, so the cookie's name contains the port.
        cookie = f"sweep-view-{request.environ['SERVER_PORT']}"
        if _is_token(request.args.get("token", ""), token):
            query = urlencode(
                [(name, value) for name, value in request.args.items(multi=True) if name != "token"]
            )
            # Relative, because only some proxies add their prefix to an absolute path.
            name = request.environ["REQUEST_URI"].partition("?")[0].rpartition("/")[2]
            answer = redirect(f"./{name}?{query}")
            # Lax: the link may be on another page, such as a notebook's, whose posts must not send
            # the cookie.
            answer.set_cookie(cookie, token, path=prefix or "/", httponly=True, samesite="Lax")
            return answer
        if not _is_token(request.cookies.get(cookie, ""), token):
            abort(Response(REFUSAL, 403, mimetype="text/plain"))
        return None

    @server.after_request
    def harden(response: Response) -> Response:
        policy = PAGE_POLICY + " ".join(script_hashes)
        if request.path.startswith("/report/"):
            policy = REPORT_POLICY if response.mimetype == "text/html" else FILE_POLICY
        response.headers["Content-Security-Policy"] = policy
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["X-Frame-Options"] = "DENY"
        return response


def _is_token(text: str, token: str) -> bool:
    return secrets.compare_digest(text.encode(), token.encode())
