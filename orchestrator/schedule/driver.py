"""One sweep as its executor sees it: packs go out, what workers tell comes in, and somebody may ask for the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from orchestrator.cluster import Interrupt
from orchestrator.schedule.dispatcher import Dispatcher
from orchestrator.schedule.placement import Placement
from orchestrator.schedule.steering import Steering
from orchestrator.store import LeaseKeeper
from orchestrator.worker import EVENTS, Ending, EndingKind, Parcel

T = TypeVar("T")


class Driver:
    """What the executor calls. After the first error, or once a signal came, it does nothing more and is `stopping`."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        steering: Steering,
        placement: Placement,
        interrupt: Interrupt,
        keeper: LeaseKeeper,
    ) -> None:
        self._dispatcher, self._steering, self._placement = dispatcher, steering, placement
        self._interrupt, self._keeper = interrupt, keeper
        self._error: Exception | None = None
        self._parcels: dict[str, Parcel] = {}

    @property
    def stopping(self) -> bool:
        """True once a signal or an error asks for the end."""
        return self._interrupt.requested or self._error is not None

    @property
    def finished(self) -> bool:
        """True when no pack is left and none can follow."""
        return self.stopping or self._dispatcher.finished

    def raise_error(self) -> None:
        """Raise the error that stopped the sweep, if one did."""
        if self._error is not None:
            raise self._error

    def next_pack(self, key: str) -> Parcel | None:
        """The next pack, under the name `key`; None while there is none."""
        return self._guarded(lambda: self._next_pack(key), None)

    def events(self, key: str, text: str) -> None:
        """What the worker of that pack tells."""
        self._guarded(lambda: self._dispatcher.events(key, EVENTS.validate_json(text)), None)

    def ended(self, key: str, ending: Ending | None = None) -> None:
        """That pack is over, well or not."""
        self._guarded(lambda: self._ended(key, ending), None)

    def look(self) -> list[str]:
        """See what has changed around the sweep, the lease included; returns the packs that are to be ended."""
        given_up: list[str] = self._guarded(self._look, [])
        self._dispatcher.show()
        return given_up

    def _guarded(self, action: Callable[[], T], otherwise: T) -> T:
        """Do something unless the sweep is stopping; an error stops it.

        Looks at the lease first: a driver that lost it must not speak for trials that another one runs.
        """
        if self.stopping:
            return otherwise
        try:
            self._keeper.check(len(self._dispatcher.claimed))
            return action()
        except Exception as error:
            self._error = error
            return otherwise

    def _next_pack(self, key: str) -> Parcel | None:
        pack = self._dispatcher.next_pack(key)
        if pack is None:
            return None
        place = self._placement.place([trial.validated for trial in pack.trials])
        self._parcels[key] = Parcel(pack, place)
        return self._parcels[key]

    def _ended(self, key: str, ending: Ending | None) -> None:
        self._parcels.pop(key).empty()
        if ending is not None and ending.kind is EndingKind.MACHINE_UNFIT and ending.machine is not None:
            self._placement.keep_off(ending.machine)
        self._dispatcher.ended(key, ending)

    def _look(self) -> list[str]:
        if self._steering.look():
            self._interrupt.requested = True
        nowhere = [key for key, parcel in self._parcels.items() if not self._placement.has(parcel.place)]
        return self._dispatcher.give_up(nowhere)
