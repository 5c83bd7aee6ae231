"""Occurrences are found with the records that stand for them, and get their jobs after all, once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from duetime.model.ids import new_job_id
from duetime.model.job import JobId, NewJob
from duetime.model.outcome import Cancelled, Failed
from duetime.model.schedule.occurrences import MOST_IN_A_SPAN, OccurrenceSpan, SpanCut, span_cuts
from duetime.model.states import State
from duetime.model.stored.audit import AuditEntry
from duetime.model.time import SECOND, Instant
from duetime.model.triggers.at import At
from duetime.stores.base import Hint, JobFilter, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.enqueue import ODD_TEXT
from duetime.testing.conformance.kit import (
    declare,
    finish,
    hire,
    job,
    occurrence_job,
    pause,
    prune,
    read,
    schedule,
    take,
)
from duetime.testing.conformance.schedules import declared
from duetime.testing.conformance.suite import StoreSuite
from duetime.testing.conformance.wakeups import listening

DAY = 24 * 3600 * SECOND


def entry(verb: str = "backfill", target: str = "s", **detail: object) -> AuditEntry:
    """An entry of the usual schedule."""
    return AuditEntry(verb=verb, target=target, who="ann", detail=detail)


def span(first: Instant, last: Instant, count: int) -> NewJob:
    """A record that stands for a run of skipped occurrences."""
    return occurrence_job(
        "s", last, state=State.SKIPPED, reason="misfire", span_first=first, span_count=count
    )


async def fill(store: Store, jobs: Sequence[NewJob], noted: AuditEntry | None = None) -> list[JobId]:
    """Store jobs in place of the records that are there, as often as somebody was faster."""
    every, moments = At(tuple(range(0, 1_000, 10))), [new.occurrence or 0 for new in jobs]
    while True:
        records = await store.occurrences("s", since=0, until=max(moments), limit=999)
        cut = span_cuts(records, moments, schedule("s", next_at=None, fired_through=0), every)
        ids = await store.backfill(jobs, noted or entry(), cuts=cut)
        if ids is not None:
            return ids


async def found(store: Store, since: Instant, until: Instant, limit: int = 99) -> list[JobId]:
    """The records of a stretch."""
    return [record.id for record in await store.occurrences("s", since=since, until=until, limit=limit)]


class TestOccurrences(StoreSuite):
    """`occurrences`."""

    async def test_records_come_by_occurrence_with_the_first_one_after_the_stretch(
        self, store: Store
    ) -> None:
        jobs = [occurrence_job("s", at) for at in (50, 10, 40, 20, 30)]
        others = [occurrence_job("other", 25), occurrence_job("other", 31)]
        await store.enqueue([*jobs, *others])
        fifty, ten, forty, twenty, thirty = [new.id for new in jobs]
        assert await found(store, 10, 30) == [ten, twenty, thirty, forty]
        assert await found(store, 11, 29) == [twenty, thirty]
        assert await found(store, 31, 39) == [forty]
        assert await found(store, 41, 99) == [fifty]
        assert await found(store, 51, 99) == []
        assert await found(store, 0, 99, limit=2) == [ten, twenty]
        assert await store.occurrences("no\x00thing", since=0, until=99, limit=9) == []

    async def test_a_run_of_skipped_ones_that_ends_after_the_stretch_is_found(self, store: Store) -> None:
        missed = span(10, 100, 10)
        await store.enqueue([missed, occurrence_job("s", 200)])
        (record,) = await store.occurrences("s", since=30, until=50, limit=9)
        assert (record.id, record.span_first, record.span_count) == (missed.id, 10, 10)

    async def test_a_record_stands_for_as_many_as_there_can_be(self, store: Store) -> None:
        await store.enqueue([span(10, 100, MOST_IN_A_SPAN)])
        (record,) = await store.occurrences("s", since=0, until=100, limit=9)
        assert record.span_count == MOST_IN_A_SPAN

    async def test_what_has_given_up_its_occurrence_is_not_found(
        self, store: Store, clock: FakeClock
    ) -> None:
        await declare(store, declared(clock))
        at = clock.now() + 5
        await store.enqueue([occurrence_job("s", at)])
        await pause(store, "s")
        assert await found(store, 0, at) == []
        assert len(await store.find(JobFilter(schedule="s"))) == 1


class TestBackfill(StoreSuite):
    """`backfill`."""

    async def test_jobs_are_made_for_occurrences_without_one(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        there = occurrence_job("s", 20)
        await store.enqueue([there])
        jobs = [occurrence_job("s", at) for at in (10, 20, 30)]
        async with listening(store) as heard:
            assert await store.backfill(jobs, entry(count=2)) == [jobs[0].id, jobs[2].id]
            await heard(Hint("jobs"))
        assert await found(store, 0, 99) == [jobs[0].id, there.id, jobs[2].id]
        (noted,) = await store.entries("s", limit=9)
        assert (noted.verb, noted.who, noted.at, noted.detail) == (
            "backfill",
            "ann",
            clock.now(),
            {"count": 2},
        )
        assert len(await take(store)) == 3

    async def test_nothing_to_make_leaves_no_trace(self, store: Store) -> None:
        await store.enqueue([occurrence_job("s", 20)])
        assert await store.backfill([occurrence_job("s", 20)], entry()) == []
        assert await store.backfill([], entry()) == []
        assert await store.entries("s", limit=9) == []

    async def test_what_is_left_of_a_span_does_not_end_where_a_job_stands(self, store: Store) -> None:
        before, after = occurrence_job("s", 20), occurrence_job("s", 30)
        await fill(store, [before])
        await store.enqueue([span(10, 30, 3)])
        assert await fill(store, [after]) == [after.id]
        records = await store.occurrences("s", since=0, until=99, limit=99)
        assert [(record.occurrence, record.state) for record in records] == [
            (10, State.SKIPPED), (20, State.PENDING), (30, State.PENDING),
        ]  # fmt: skip

    async def test_a_record_that_it_was_skipped_gives_way_and_stays(self, store: Store) -> None:
        skipped = occurrence_job("s", 20, state=State.SKIPPED, reason="overlap")
        await store.enqueue([skipped])
        new = occurrence_job("s", 20)
        assert await store.backfill([new], entry()) == [], "nobody has asked for that"
        assert await fill(store, [new]) == [new.id]
        assert await found(store, 0, 99) == [new.id]
        record = await read(store, skipped.id)
        assert (record.state, record.occurrence, record.span_first, record.span_count) == (
            State.SKIPPED,
            None,
            20,
            1,
        )

    @pytest.mark.parametrize(
        ("taken", "left"),
        [
            ([80, 90, 100], [(10, 70, 7)]),
            ([10, 20, 30], [(40, 100, 7)]),
            ([50, 60], [(10, 40, 4), (70, 100, 4)]),
            ([20, 90], [(10, 10, 1), (30, 80, 6), (100, 100, 1)]),
        ],
    )
    async def test_a_record_of_many_goes_on_to_stand_for_the_others(
        self, store: Store, taken: list[int], left: list[tuple[int, int, int]]
    ) -> None:
        await store.enqueue([missed := span(10, 100, 10)])
        jobs = [occurrence_job("s", at) for at in taken]
        assert await fill(store, jobs) == [new.id for new in jobs]
        records = await store.occurrences("s", since=0, until=999, limit=99)
        spans = [(r.span_first, r.occurrence, r.span_count) for r in records if r.state is State.SKIPPED]
        assert spans == left
        assert {r.reason for r in records if r.state is State.SKIPPED} == {"misfire"}
        assert missed.id in {record.id for record in records}

    async def test_in_parts_each_occurrence_is_accounted_for_at_every_moment(self, store: Store) -> None:
        await store.enqueue([span(10, 100, 10)])
        for part in ([30, 40], [10], [100], [50, 60, 70, 80, 90], [20]):
            await fill(store, [occurrence_job("s", at) for at in part])
            records = await store.occurrences("s", since=0, until=999, limit=99)
            assert sum(record.span_count for record in records) == 10
        assert {record.state for record in records} == {State.PENDING}

    async def test_what_has_changed_since_it_was_read_is_left_as_it_is(self, store: Store) -> None:
        await store.enqueue([missed := span(10, 100, 10)])
        stale = SpanCut(missed.id, OccurrenceSpan(20, 100, 9), None)
        assert await store.backfill([occurrence_job("s", 100)], entry(), cuts=[stale]) is None
        record = await read(store, missed.id)
        assert (record.span_first, record.occurrence, record.span_count) == (10, 100, 10)
        assert await store.entries("s", limit=9) == []

    async def test_a_repetition_after_a_lost_answer_says_the_same_of_records_that_gave_way(
        self, store: Store
    ) -> None:
        await store.enqueue([missed := span(10, 100, 10)])
        new = occurrence_job("s", 100)
        cut = SpanCut(missed.id, OccurrenceSpan(10, 100, 10), OccurrenceSpan(10, 90, 9))
        for _ in range(2):
            assert await store.backfill([new], entry(), cuts=[cut]) == [new.id]
        assert (await read(store, missed.id)).span_count == 9

    async def test_a_record_of_many_that_all_get_jobs_gives_way(self, store: Store) -> None:
        await store.enqueue([missed := span(10, 100, 10)])
        jobs = [occurrence_job("s", at) for at in range(10, 101, 10)]
        assert len(await fill(store, jobs)) == 10
        assert await found(store, 0, 999) == [new.id for new in jobs]
        assert (await read(store, missed.id)).span_count == 10

    async def test_jobs_that_wait_or_have_run_stay_as_they_are(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        old = [occurrence_job("s", at) for at in (10, 20, 30)]
        await store.enqueue(old[:2])
        failed, cancelled = sorted(await take(store), key=lambda claim: claim.occurrence or 0)
        await finish(store, failed, Failed(error="boom"), now=clock.now())
        await finish(store, cancelled, Cancelled("stopped"), now=clock.now())
        await store.enqueue(old[2:])
        before = await store.get([new.id for new in old])
        assert await fill(store, [occurrence_job("s", at) for at in (10, 20, 30)]) == []
        assert await store.get([new.id for new in old]) == before

    async def test_a_job_that_was_cancelled_before_it_began_gives_way(self, store: Store) -> None:
        await store.enqueue([old := occurrence_job("s", 10)])
        await store.cancel([old.id], reason="superseded by the next occurrence")
        new = occurrence_job("s", 10)
        assert await fill(store, [new]) == [new.id]
        record = await read(store, old.id)
        assert (record.state, record.occurrence, record.span_first) == (State.CANCELLED, None, 10)

    async def test_twice_is_once_and_a_repetition_after_a_lost_answer_says_the_same(
        self, store: Store, other: Store
    ) -> None:
        jobs = [occurrence_job("s", at) for at in range(100)]
        noted = entry()
        ids = await store.backfill(jobs, noted)
        assert await other.backfill(jobs, noted) == ids == [new.id for new in jobs]
        assert await other.backfill([occurrence_job("s", at) for at in range(100)], entry()) == []
        assert len(await found(store, 0, 999, limit=999)) == 100
        assert len(await store.entries("s", limit=9)) == 1

    async def test_of_many_that_backfill_at_once_each_occurrence_gets_one_job(
        self, store: Store, other: Store
    ) -> None:
        await store.enqueue([span(0, 990, 100)])
        told = await asyncio.gather(
            *(
                fill((store, other)[n % 2], [occurrence_job("s", at) for at in range(10 * n, 900, 10)])
                for n in range(6)
            )
        )
        ids = [job_id for made in told for job_id in made]
        assert len(ids) == 90
        records = await store.occurrences("s", since=0, until=999, limit=999)
        assert {record.id for record in records if record.state is State.PENDING} == set(ids)
        assert sum(record.span_count for record in records) == 100


async def note(store: Store, *entries: AuditEntry) -> None:
    """Keep who did what, with a job, as those do who make one by hand."""
    await store.enqueue([job()], entries=entries)


class TestEntries(StoreSuite):
    """`entries`, and how they come and go."""

    async def test_they_come_newest_first_by_the_clock_of_the_store(
        self, store: Store, clock: FakeClock
    ) -> None:
        ids = [new_job_id() for _ in range(4)]
        # Made by processes whose clocks disagree.
        for verb, entry_id in zip("abcd", reversed(ids), strict=True):
            await note(store, AuditEntry(verb=verb, target="s", who="ann", id=entry_id))
            clock.advance(1)
        await note(store, entry("e", "other"))
        assert [noted.verb for noted in await store.entries("s", limit=9)] == ["d", "c", "b", "a"]
        first, second = await store.entries("s", limit=2)
        assert [n.verb for n in await store.entries("s", limit=2, before=second.id)] == ["b", "a"]
        assert [n.verb for n in await store.entries("s", limit=1, before=first.id)] == ["c"]
        assert await store.entries("s", limit=2, before=ids[-1]) == []
        assert await store.entries("s", limit=2, before="no such entry") == []

    async def test_those_of_one_moment_keep_their_order(self, store: Store) -> None:
        noted = [entry(f"v{number}") for number in range(20)]
        await note(store, *noted)
        read = await store.entries("s", limit=99)
        assert [row.id for row in read] == [row.id for row in reversed(noted)]
        pages, before = list[str](), None
        while page := await store.entries("s", limit=3, before=before):
            pages += [row.id for row in page]
            before = page[-1].id
        assert pages == [row.id for row in read]

    async def test_an_entry_is_kept_also_without_a_job(self, store: Store) -> None:
        entry = AuditEntry(verb="edit", target="s1", who="test")
        for _ in range(2):
            assert await store.enqueue([], entries=[entry]) == []
        assert [kept.id for kept in await store.entries("s1", limit=9)] == [entry.id]

    async def test_an_entry_is_kept_once(self, store: Store) -> None:
        noted = entry()
        await note(store, noted)
        await note(store, noted)
        assert len(await store.entries("s", limit=9)) == 1

    async def test_odd_text_survives_as_far_as_it_can_be_kept(self, store: Store) -> None:
        odd = entry(reason=ODD_TEXT, before=[None, 1, {"x": [True]}])
        broken = entry("other", lone="\ud800", who="x\ud800\x00")
        await note(store, odd, broken)
        second, first = await store.entries("s", limit=9)
        assert first.detail == odd.detail
        assert set(second.detail) == {"lone", "who"}

    async def test_what_was_done_long_ago_is_forgotten_with_old_jobs(
        self, store: Store, clock: FakeClock
    ) -> None:
        await note(store, entry("old"))
        old = clock.now()
        clock.advance("2d")
        await note(store, entry("new"))
        await prune(store, before=old + DAY)
        assert [noted.verb for noted in await store.entries("s", limit=9)] == ["new", "old"]
        await prune(store, before=old + DAY + 1)
        assert [noted.verb for noted in await store.entries("s", limit=9)] == ["new"]
        await prune(store, before=None)
        assert [noted.verb for noted in await store.entries("s", limit=9)] == ["new"]
