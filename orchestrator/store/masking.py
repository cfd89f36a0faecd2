"""Passwords that were typed are shown nowhere."""

from __future__ import annotations

import re

PASSWORD = re.compile(r"(://[^:/@?]*:).+(?=@)|([?&](?:ssl)?password=)[^&]+")


def hide_password(word: str) -> str:
    """A word of the command line with the password of a store's address in it hidden."""
    return PASSWORD.sub(lambda match: f"{match[1] or match[2]}***", word)
