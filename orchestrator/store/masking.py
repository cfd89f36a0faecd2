"""Passwords that were typed are shown nowhere."""

from __future__ import annotations

import re

PASSWORD = re.compile(r"(://[^:/@?]*:).+(?=@)|([?&](?:ssl)?password=)[^&]+")


def masked(word: str) -> str:
    """A word of the command line with the password of a store's address in it hidden."""
    return PASSWORD.sub(lambda found: f"{found[1] or found[2]}***", word)
