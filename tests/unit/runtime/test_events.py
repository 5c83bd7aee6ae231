from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import Any

import pytest

from duetime import Event, EventKind
from duetime.errors import InvalidOption
from duetime.model.time import SECOND
from duetime.runtime.events import Events

STARTED = Event(kind=EventKind.JOB_STARTED, at=datetime(2030, 1, 1, tzinfo=UTC), worker="w1", job="a")
FAILED = Event(kind=EventKind.JOB_FAILED, at=datetime(2030, 1, 1, tzinfo=UTC), worker="w1", job="a")


def test_a_subscriber_gets_the_kinds_it_asked_for() -> None:
    events, some, everything = Events(), [], []  # type: ignore[var-annotated]
    assert not events.subscriptions
    events.subscribe(some.append, "job.failed")
    events.subscribe(everything.append)
    assert events.subscriptions
    for event in (STARTED, FAILED):
        events.emit(event)
    assert (some, everything) == ([FAILED], [STARTED, FAILED])


def test_a_subscription_can_be_ended() -> None:
    events, seen = Events(), []  # type: ignore[var-annotated]
    unsubscribe = events.subscribe(seen.append)
    events.emit(STARTED)
    for _ in range(2):
        unsubscribe()
    events.emit(FAILED)
    assert (seen, events.subscriptions) == ([STARTED], ())


async def test_async_subscribers_are_awaited() -> None:
    events, seen = Events(), []

    async def listen(event: Event) -> None:
        await asyncio.sleep(0)
        seen.append(event)

    events.subscribe(listen)
    events.emit(STARTED)
    await events.drain(5)
    assert seen == [STARTED]


async def test_a_subscriber_that_raises_is_logged_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    events, seen = Events(), []  # type: ignore[var-annotated]

    def broken(event: Event) -> None:
        raise LookupError("plain")

    async def broken_too(event: Event) -> None:
        raise LookupError("async")

    for subscriber in (broken, broken_too, seen.append):
        events.subscribe(subscriber)
    with caplog.at_level(logging.ERROR, logger="duetime.events"):
        events.emit(STARTED)
        await events.drain(5)
    assert seen == [STARTED]
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == ["plain", "async"]


@pytest.mark.parametrize(("callback", "kind"), [(print, "job.exploded"), (7, "job.failed")])
def test_what_cannot_be_subscribed_is_refused(callback: Any, kind: str) -> None:
    with pytest.raises(InvalidOption, match=r"job\.exploded|needs a function"):
        Events().subscribe(callback, kind)


async def test_a_subscriber_that_raises_each_time_fills_no_disk(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0
    monkeypatch.setattr("duetime.runtime.events.monotonic", lambda: now)

    def broken(event: Event) -> None:
        raise LookupError("each time")

    events = Events()
    events.subscribe(broken)
    for _ in range(1_000):
        events.emit(STARTED)
    assert caplog.messages == ["a subscriber to job.started raised"] * 10
    caplog.clear()
    now = SECOND
    events.emit(STARTED)
    assert caplog.messages == [
        "subscribers raised 990 more times, without a line each",
        "a subscriber to job.started raised",
    ]


async def test_how_often_a_subscriber_raised_is_logged_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: Event) -> None:
        raise LookupError

    events = Events()
    events.subscribe(broken)
    for _ in range(1_000):
        events.emit(STARTED)
    await events.drain(1)
    await events.drain(1)
    assert caplog.messages.count("subscribers raised 990 more times, without a line each") == 1
