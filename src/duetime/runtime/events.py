"""Tells those who want to know what the workers of this process do."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

from duetime.errors import InvalidOption
from duetime.model.event import Event, EventKind

log = logging.getLogger("duetime.events")

Subscriber: TypeAlias = Callable[[Event], Awaitable[None] | None]


class _Subscription(NamedTuple):
    callback: Subscriber
    kinds: frozenset[EventKind]


class Events:
    """Passes events on; whoever raises is logged and harms nobody."""

    def __init__(self) -> None:
        self.heard = False
        """Whether anybody listens; if not, no event need be made."""
        self._subscriptions: tuple[_Subscription, ...] = ()
        self._under_way: set[asyncio.Future[None]] = set()

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
        """Tell everybody who wants events of this kind."""
        for callback, kinds in self._subscriptions:
            if event.kind not in kinds:
                continue
            try:
                answer = callback(event)
                if inspect.isawaitable(answer):
                    task = asyncio.ensure_future(_awaited(answer, event))
                    self._under_way.add(task)
                    task.add_done_callback(self._under_way.discard)
            except Exception:
                log.exception("a subscriber to %s raised", event.kind)

    async def drain(self, timeout: float) -> None:
        """Wait for async subscribers that are still at work, but not for ever."""
        if self._under_way:
            await asyncio.wait(tuple(self._under_way), timeout=timeout)

    def _set(self, subscriptions: tuple[_Subscription, ...]) -> None:
        self._subscriptions = subscriptions
        self.heard = bool(subscriptions)


async def _awaited(answer: Awaitable[None], event: Event) -> None:
    try:
        await answer
    except Exception:
        log.exception("a subscriber to %s raised", event.kind)


def _kind(given: EventKind | str) -> EventKind:
    try:
        return EventKind(given)
    except ValueError:
        text = f"unknown kind of event {given!r}; kinds are {', '.join(EventKind)}"
        raise InvalidOption(text) from None
