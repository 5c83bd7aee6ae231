"""A worker writes down what it does only while someone watches, and misses nothing then."""

from __future__ import annotations

import asyncio

import pytest

from duetime.errors import StoreUnavailable
from duetime.model.states import State
from duetime.model.stored.watched import MOST_NOTED, Journal
from duetime.model.time import SECOND
from duetime.runtime.settling import journal
from duetime.runtime.settling.journal import JournalWriter
from tests.unit.runtime.kit import StillTime, context_of

PATIENCE = 10
LONG = 60 * SECOND


class JournalStore:
    """Takes journals, unless an error is due first."""

    def __init__(self) -> None:
        self.written: asyncio.Queue[Journal] = asyncio.Queue()
        self.errors: list[Exception] = []

    async def write_journal(self, worker: str, text: str) -> None:
        if self.errors:
            raise self.errors.pop()
        self.written.put_nowait(Journal.read(text))

    async def next(self) -> Journal:
        async with asyncio.timeout(PATIENCE):
            return await self.written.get()


class Noting:
    """A journal whose time is the test's."""

    def __init__(self) -> None:
        self.store, self.time = JournalStore(), StillTime()
        self.journal = JournalWriter(context_of(self.store, time=self.time))

    async def ended(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.journal.until is not None:  # noqa: ASYNC110 - a timer of the loop ends it
                await asyncio.sleep(0)

    def note(self, *jobs: str, queue: str = "mail", state: State = State.SUCCEEDED) -> None:
        for job in jobs:
            self.journal.note(job, queue, state)


@pytest.fixture
async def noting() -> Noting:
    return Noting()


async def test_without_a_watch_nothing_is_written(noting: Noting) -> None:
    noting.journal.start()
    noting.note("a", "b")
    await noting.journal.stop()
    assert noting.store.written.empty()


async def test_before_it_is_watched_it_counts_and_names_jobs(noting: Noting) -> None:
    noting.note("a", "b")
    noting.journal.attend(LONG)
    noting.journal.start()
    assert await noting.store.next() == Journal(2, {}, ["a", "b"], until=LONG)
    noting.note("c", state=State.RUNNING)
    assert await noting.store.next() == Journal(3, {"mail": {"running": 1}}, ["c"], until=LONG)
    await noting.journal.stop()


async def test_when_the_watch_is_over_it_writes_no_more(noting: Noting) -> None:
    noting.journal.attend(1)
    noting.journal.start()
    await noting.store.next()
    await noting.ended()
    noting.note("a")
    await noting.journal.stop()
    assert noting.store.written.empty()


async def test_a_watch_that_is_over_is_not_taken_up(noting: Noting) -> None:
    noting.time.instant = 2
    noting.journal.attend(1)
    noting.journal.start()
    noting.note("a")
    await noting.journal.stop()
    assert noting.store.written.empty()


async def test_what_was_noted_last_is_written_when_it_stops(noting: Noting) -> None:
    noting.journal.attend(LONG)
    noting.journal.start()
    await noting.store.next()
    noting.note("a")
    await noting.journal.stop()
    assert (await noting.store.next()).latest == ["a"]


async def test_of_very_many_the_last_are_named_and_all_are_counted(noting: Noting) -> None:
    noting.journal.attend(LONG)
    noting.note(*(str(number) for number in range(MOST_NOTED + 5)))
    noting.journal.start()
    written = await noting.store.next()
    assert (written.total, len(written.latest), written.latest[0]) == (MOST_NOTED + 5, MOST_NOTED, "5")
    assert written.tallies == {"mail": {"succeeded": MOST_NOTED + 5}}
    await noting.journal.stop()


async def test_what_a_look_has_had_time_for_is_named_no_more(
    noting: Noting, monkeypatch: pytest.MonkeyPatch
) -> None:
    noting.journal.attend(LONG)
    noting.journal.start()
    noting.note("a")
    assert (await noting.store.next()).latest == ["a"]
    monkeypatch.setattr(journal, "_KEPT", 0.0)
    noting.note("b")
    assert (await noting.store.next()).total == 2
    await noting.journal.stop()


async def test_what_could_not_be_written_is_written_later(noting: Noting) -> None:
    noting.journal.attend(LONG)
    noting.store.errors.append(StoreUnavailable("down"))
    noting.journal.start()
    noting.note("a")
    assert (await noting.store.next()).latest == ["a"]
    await noting.journal.stop()
