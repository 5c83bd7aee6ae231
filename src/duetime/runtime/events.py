"""Tells subscribers what the workers of this process do, once the store has accepted it."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from duetime.errors import InvalidOption
from duetime.model.events import Event, EventKind
from duetime.model.job import Claim, Token
from duetime.model.outcome import Settlement
from duetime.model.text import counted
from duetime.model.time import SECOND, Instant, to_datetime
from duetime.runtime.identity import WorkerIdentity
from duetime.runtime.store_clock import StoreClock, monotonic

log = logging.getLogger("duetime.events")

_MAX_ERRORS_LOGGED = 10
"""How many errors of subscribers are logged in a second: there may be events of many thousand jobs."""

Subscriber: TypeAlias = Callable[[Event], Awaitable[None] | None]


class Events:
    """Passes events on; a subscriber that raises is logged and harms no other."""

    def __init__(self) -> None:
        self.subscriptions: tuple[tuple[Subscriber, frozenset[EventKind]], ...] = ()
        """Subscribers with what they want to hear; if there are none, no event need be made."""
        self._under_way: set[asyncio.Future[None]] = set()
        self._second: Instant = 0
        self._raised = 0
        """How often subscribers have raised since then."""

    def subscribe(self, callback: Subscriber, *kinds: EventKind | str) -> Callable[[], None]:
        """Call a function, plain or async, with every event of these kinds, or of all; return how to end that.

        A plain function is called in the event loop, so it must not take long.
        """
        if not callable(callback):
            raise InvalidOption(f"subscribe() needs a function that takes an event, not {callback!r:.100}")
        subscription = (callback, frozenset(map(_event_kind, kinds)) or frozenset(EventKind))
        self.subscriptions = (*self.subscriptions, subscription)

        def unsubscribe() -> None:
            self.subscriptions = tuple(s for s in self.subscriptions if s is not subscription)

        return unsubscribe

    def emit(self, event: Event) -> None:
        """Call all subscribers to events of this kind."""
        for callback, kinds in self.subscriptions:
            if event.kind not in kinds:
                continue
            try:
                answer = callback(event)
                if inspect.isawaitable(answer):
                    task = asyncio.ensure_future(self._await(answer, event))
                    self._under_way.add(task)
                    task.add_done_callback(self._under_way.discard)
            except Exception as error:  # noqa: BLE001 - it is logged, and harms no other subscriber
                self._tell(event, error)

    async def drain(self, timeout: float) -> None:
        """Wait for async subscribers that are still at work, but not for ever."""
        if self._under_way:
            await asyncio.wait(tuple(self._under_way), timeout=timeout)
        self._tell_rest()

    async def _await(self, answer: Awaitable[None], event: Event) -> None:
        try:
            await answer
        except Exception as error:  # noqa: BLE001 - see above
            self._tell(event, error)

    def _tell(self, event: Event, error: Exception) -> None:
        if (now := monotonic()) - self._second >= SECOND:
            self._tell_rest()
            self._second = now
        self._raised += 1
        if self._raised <= _MAX_ERRORS_LOGGED:
            log.error("a subscriber to %s raised", event.kind, exc_info=error)

    def _tell_rest(self) -> None:
        if (more := self._raised - _MAX_ERRORS_LOGGED) > 0:
            log.error("subscribers raised %s, without a line each", counted(more, "more time"))
        self._raised = 0


def _event_kind(given: EventKind | str) -> EventKind:
    try:
        return EventKind(given)
    except ValueError:
        raise InvalidOption(f"unknown kind of event {given!r}; kinds are {', '.join(EventKind)}") from None


class WorkerEvents:
    """Makes the events of one worker, while there are subscribers."""

    def __init__(self, events: Events, identity: WorkerIdentity, time: StoreClock) -> None:
        self.events = events
        self._identity = identity
        self._time = time
        self._expected: dict[Token, tuple[Claim, EventKind | None]] = {}

    def worker(self, kind: EventKind, *, reason: str | None = None) -> None:
        """Tell what becomes of the worker itself."""
        if self.events.subscriptions:
            at = to_datetime(self._time.now())
            self.events.emit(Event(kind=kind, at=at, worker=self._identity.info.id, reason=reason))

    def expect(self, claim: Claim, settlement: Settlement, kind: EventKind | None) -> None:
        """Remember what to tell once the store has answered to a settlement."""
        self._expected[settlement.token] = claim, kind

    def settled(self, batch: Sequence[Settlement], accepted: frozenset[Token]) -> None:
        """Tell what the store has accepted, and what it has refused because the claim was lost."""
        if not self._expected:
            return
        for settlement in batch:
            if (expected := self._expected.pop(settlement.token, None)) is None:
                continue
            claim, kind = expected
            if settlement.token not in accepted:
                kind = EventKind.JOB_LOST
            if kind is not None:
                at = settlement.finished_at or settlement.ended_at or self._time.now()
                self.tell(kind, claim, at=at, settlement=settlement)

    def tell(
        self, kind: EventKind, claim: Claim, *, at: Instant, settlement: Settlement | None = None
    ) -> None:
        """Tell what has become of a job."""
        self.events.emit(
            Event(
                kind=kind,
                at=to_datetime(at),
                worker=self._identity.info.id,
                job=claim.job_id,
                task=claim.task,
                queue=claim.queue,
                attempt=claim.attempt,
                error=None if settlement is None else settlement.error,
                reason=None if settlement is None else settlement.reason,
            )
        )
