"""Tells those who want to know what the workers of this process do."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

from duetime.errors import InvalidOption
from duetime.model.event import Event, EventKind
from duetime.model.instants import SECOND, Instant
from duetime.runtime.timekeeper import monotonic

log = logging.getLogger("duetime.events")

_MOST = 10
"""How many errors of subscribers are logged in a second: there may be events of many thousand jobs."""

Subscriber: TypeAlias = Callable[[Event], Awaitable[None] | None]


class _Subscription(NamedTuple):
    callback: Subscriber
    kinds: frozenset[EventKind]


class Events:
    """Passes events on; a subscriber that raises is logged and harms no other."""

    def __init__(self) -> None:
        self.heard = False
        """Whether there are subscribers; if not, no event need be made."""
        self._subscriptions: tuple[_Subscription, ...] = ()
        self._under_way: set[asyncio.Future[None]] = set()
        self._second: Instant = 0
        self._raised = 0
        """How often subscribers have raised since then."""

    def subscribe(self, callback: Subscriber, *kinds: EventKind | str) -> Callable[[], None]:
        """Call a function, plain or async, with every event of these kinds, or of all; return how to end that.

        A plain function is called in the event loop, so it must not take long.
        """
        if not callable(callback):
            text = f"subscribe() needs a function that takes an event, not {callback!r:.100}"
            raise InvalidOption(text)
        subscription = _Subscription(callback, frozenset(map(_kind, kinds)) or frozenset(EventKind))
        self._set((*self._subscriptions, subscription))

        def unsubscribe() -> None:
            self._set(tuple(s for s in self._subscriptions if s is not subscription))

        return unsubscribe

    def emit(self, event: Event) -> None:
        """Call all subscribers to events of this kind."""
        for callback, kinds in self._subscriptions:
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

    def _set(self, subscriptions: tuple[_Subscription, ...]) -> None:
        self._subscriptions = subscriptions
        self.heard = bool(subscriptions)

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
        if self._raised <= _MOST:
            log.error("a subscriber to %s raised", event.kind, exc_info=error)

    def _tell_rest(self) -> None:
        if self._raised > _MOST:
            log.error("subscribers raised %d more times, without a line each", self._raised - _MOST)
        self._raised = 0


def _kind(given: EventKind | str) -> EventKind:
    try:
        return EventKind(given)
    except ValueError:
        text = f"unknown kind of event {given!r}; kinds are {', '.join(EventKind)}"
        raise InvalidOption(text) from None
