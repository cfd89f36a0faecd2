"""The console that commands print on: nothing that a store, a corpus or a file holds can command
the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from typing_extensions import override

from trainables.errors import terminal_text


class ShownConsole(Console):
    """Texts are shown as they are, brackets and all, what would command the terminal spelled
    out."""

    @override
    def print(self, *objects: Any, **options: Any) -> None:
        """Print; texts are not broken into lines, as they may hold a command or a path to copy."""
        super().print(
            *objects, **{"soft_wrap": all(isinstance(shown, str) for shown in objects), **options}
        )

    @override
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The pieces of what is printed; rich's own commands (cursor, colours) stay."""
        for segment in super().render(renderable, options):
            yield (
                segment if segment.control else Segment(terminal_text(segment.text), segment.style)
            )


class _Shown:
    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal

    def write(self, text: str, /) -> object:
        return self._terminal.write(terminal_text(text))


def for_reader(stream: TextIO) -> TextIO | _Shown:
    """The stream for texts of any content: a file or program gets every character, a terminal none
    that commands it."""
    return _Shown(stream) if stream.isatty() else stream
