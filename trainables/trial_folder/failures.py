"""What is said of an exception that ended a trial."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterable
from pathlib import Path

from trainables.config.output_layer import LayerFile
from trainables.errors import first_line


def cause_of(error: BaseException, directory: Path, layer_files: Iterable[LayerFile]) -> str:
    """An exception in one line, with the line of the user's own layer that it came through.

    Call it where the exception is handled; the whole traceback goes into the folder's error.log.
    """
    # Where the log cannot be written, the cause still reaches who asked.
    with contextlib.suppress(OSError):
        (directory / "error.log").write_text(traceback.format_exc())
    cause = ": ".join(filter(None, (type(error).__name__, first_line(str(error)))))
    names = tuple(file.name for file in layer_files)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if names and Path(frame.filename).name.startswith(names):
            return f"{cause} ({Path(frame.filename).name.partition(' ')[0]}, line {frame.lineno})"
    return cause
