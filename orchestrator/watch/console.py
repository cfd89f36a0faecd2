"""Terminal output in which texts of a store, corpus or file cannot control the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from typing_extensions import override

from trainables.errors import terminal_text


class ShownConsole(Console):
    """A console that escapes control characters in every text."""

    @override
    def print(self, *objects: Any, **options: Any) -> None:
        """Print without wrapping texts, which may hold a command or path to copy."""
        super().print(
            *objects, **{"soft_wrap": all(isinstance(item, str) for item in objects), **options}
        )

    @override
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield (
                segment if segment.control else Segment(terminal_text(segment.text), segment.style)
            )


class _EscapedStream:
    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal

    def write(self, text: str, /) -> object:
        return self._terminal.write(terminal_text(text))


def for_reader(stream: TextIO) -> TextIO | _EscapedStream:
    """Return a stream that escapes control characters if `stream` is a terminal."""
    return _EscapedStream(stream) if stream.isatty() else stream
