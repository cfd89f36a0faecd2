"""What the driver gives a worker to do, as JSON on its way."""

from __future__ import annotations

from trainables.config.frozen import Frozen
from trainables.config.kinds import AnyConfig


class Assignment(Frozen):
    """A pack's trials, and where a search wants to stop the one that it is of."""

    configs: tuple[AnyConfig, ...]
    names: tuple[str, ...]
    """What readers call the trials, one each."""
    stop_above: dict[int, float] | None = None
    """See `Pack.stop_above`."""
