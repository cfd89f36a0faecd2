"""Between Ray Tune, which copies and pickles what it is given and wraps its errors, and the dispatcher."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any, Self

from orchestrator.cluster.interrupt import Interrupt
from orchestrator.schedule.dispatcher import Dispatcher
from orchestrator.schedule.packs import Pack
from orchestrator.schedule.placement import Placement, configs_of
from orchestrator.schedule.steering import Steering
from orchestrator.store.lease import LeaseKeeper
from orchestrator.worker.assignment import Assignment

Watch = Callable[[Sequence[int], Set[str]], None]
"""Told at every step how many trials each pack has that is with a worker, or on its way to one, and the ids of the
trials that workers are at."""


class Parcel:
    """A pack on its way to a worker. Tune keeps copies of every config for ever: they share one text, emptied later."""

    def __init__(self, pack: Pack, placement: Placement) -> None:
        configs = tuple(configs_of(pack.trials))
        self.place = placement.place(configs)
        rule = None if pack.stop_above is None else dict(pack.stop_above)
        names = tuple(trial.name for trial in pack.trials)
        self._text = Assignment(configs=configs, names=names, stop_above=rule).model_dump_json()
        self.size = len(configs)

    def open(self) -> Assignment:
        """What is to be done."""
        return Assignment.model_validate_json(self._text)

    def empty(self) -> None:
        """Forget the trials."""
        self._text = Assignment(configs=(), names=()).model_dump_json()

    def __str__(self) -> str:
        return f"{self.size} trials"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class Bridge:
    """What Tune's searcher, callback and stopper share: the dispatcher, and the reason to stop early."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        interrupt: Interrupt,
        keeper: LeaseKeeper,
        steering: Steering,
        placement: Placement,
        watch: Watch | None = None,
    ) -> None:
        self.dispatcher, self._interrupt, self._keeper = dispatcher, interrupt, keeper
        self._steering, self._placement, self._watch = steering, placement, watch
        self._error: Exception | None = None
        self._parcels: dict[str, Parcel] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {}  # Tune pickles all it is given, for a restore that never happens

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    @property
    def stopping(self) -> bool:
        """True once a signal or an error asks for the end."""
        return self._interrupt.requested or self._error is not None

    def guard(self, action: Callable[[], None]) -> None:
        """Do something unless the sweep is stopping; an error stops it, and `raise_error` raises it in the end.

        Looks at the lease first: a driver that lost it must not speak for trials that another one runs.
        """
        if self.stopping:
            return
        try:
            self._keeper.check(self.dispatcher.held)
            action()
        except Exception as error:
            self._error = error

    def raise_error(self) -> None:
        """Raise the error that stopped the sweep, if one did."""
        if self._error is not None:
            raise self._error

    def look(self) -> list[str]:
        """See what has changed, the lease included; returns the Tune trials that are to be ended, worker and all."""
        given_up: list[str] = []

        def action() -> None:
            self._steering.look()
            nowhere = [key for key, parcel in self._parcels.items() if not self._placement.has(parcel.place)]
            given_up.extend(self.dispatcher.give_up(nowhere))

        self.guard(action)
        if self._watch is not None:
            self._watch([parcel.size for parcel in self._parcels.values()], self.dispatcher.running)
        return given_up

    def send(self, key: str) -> Parcel | None:
        """The next pack, for Tune's trial `key`; None while there is none."""
        pack = self.dispatcher.next_pack(key)
        if pack is None:
            return None
        self._parcels[key] = Parcel(pack, self._placement)
        return self._parcels[key]

    def refused(self, key: str, why: str, machine: str) -> None:
        """Tune's trial `key` is over: its pack must not run on that machine, see `Placement.keep_off`."""
        self._placement.keep_off(machine)
        self._parcels.pop(key).empty()
        self.dispatcher.refused(key, why)

    def ended(
        self, key: str, cause: str | None = None, *, process_died: bool = False, machine: str | None = None
    ) -> None:
        """Tune's trial `key` is over, well or for `cause`."""
        self._parcels.pop(key).empty()
        self.dispatcher.ended(key, cause, process_died=process_died, machine=machine)
