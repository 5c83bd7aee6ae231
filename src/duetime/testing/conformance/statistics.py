"""Figures over time: no part is lost or counted twice, whoever merges it and however often it is sent."""

from __future__ import annotations

import asyncio

from duetime.model.ids import new_job_id
from duetime.model.statistics import (
    PART,
    Grain,
    Kind,
    StatisticsRow,
    StoredStatistics,
    Sums,
    SumsKey,
    write_sums,
)
from duetime.model.time import DAY, HOUR, MINUTE, Instant
from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.suite import StoreSuite

ODD = "ü ☃|😀"


def part(at: Instant, body: str = '["☃"]') -> StatisticsRow:
    """What a worker has written."""
    return StatisticsRow(f"part|{new_job_id()}", "part", PART, "w1", at, body)


def row(start: Instant, *, name: str = ODD, grain: Grain = Grain.HOUR, count: int = 1) -> StatisticsRow:
    """Sums of a task."""
    key = SumsKey(Kind.TASK.value, grain.value, name, start)
    return StatisticsRow(key.id, *key, write_sums(Sums({"succeeded": count}, {3: count, -1: 3 * count})))


def span(name: str, since: Instant, until: Instant, grain: Grain = Grain.HOUR) -> tuple[str, str]:
    """The ids of a task between two times."""
    first, past = (SumsKey(Kind.TASK.value, grain.value, name, at).id for at in (since, until))
    return first, past


class TestStatistics(StoreSuite):
    """`add_statistics`, `fold_statistics`, and what reads and removes."""

    async def test_an_empty_store_has_none(self, store: Store) -> None:
        found = await store.statistics_parts(limit=9)
        assert (found.folds, dict(found.bodies)) == (0, {})
        assert await store.statistics([span(ODD, 0, DAY)]) == StoredStatistics([], [])
        assert dict(await store.statistics_rows([])) == dict(await store.statistics_rows(["x"])) == {}
        await store.add_statistics([])
        await store.prune_statistics(DAY)

    async def test_parts_are_read_oldest_first_and_by_all(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        parts = [part(clock.now() + n, f'["{n} ☃"]') for n in range(5)]
        await store.add_statistics(parts[3:])
        await other.add_statistics(parts[:3])
        found = await store.statistics_parts(limit=4)
        assert list(found.bodies.items()) == [(one.id, one.body) for one in parts[:4]]
        assert sorted((await store.statistics([])).parts) == sorted(one.body for one in parts)

    async def test_rows_take_the_place_of_parts(self, store: Store, clock: FakeClock) -> None:
        parts = [part(clock.now()), part(clock.now() + 1)]
        await store.add_statistics(parts)
        rows = [row(0), row(HOUR), row(2 * HOUR), row(HOUR, name="other"), row(HOUR, grain=Grain.MINUTE)]
        assert await store.fold_statistics(0, [parts[0].id], rows)
        found = await store.statistics([span(ODD, 0, 2 * HOUR), span("other", 0, DAY)])
        expected = [(one.id, one.body) for one in (rows[0], rows[1], rows[3])]
        assert (sorted(found.rows), list(found.parts)) == (sorted(expected), [parts[1].body])
        assert dict(await store.statistics_rows([rows[2].id, "x"])) == {rows[2].id: rows[2].body}
        left = await store.statistics_parts(limit=9)
        assert (left.folds, list(left.bodies)) == (1, [parts[1].id])

    async def test_a_row_that_is_there_is_replaced(self, store: Store) -> None:
        assert await store.fold_statistics(0, [], [row(0)])
        assert await store.fold_statistics(1, [], [row(0, count=7)])
        assert dict(await store.statistics_rows([row(0).id])) == {row(0).id: row(0, count=7).body}

    async def test_who_has_read_before_another_merged_does_nothing(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        parts = [part(clock.now()), part(clock.now() + 1)]
        await store.add_statistics(parts)
        assert await store.fold_statistics(0, [parts[0].id], [row(0)])
        assert not await other.fold_statistics(0, [parts[1].id], [row(0, count=9), row(HOUR)])
        assert dict(await store.statistics_rows([row(0).id, row(HOUR).id])) == {row(0).id: row(0).body}
        assert list((await store.statistics_parts(limit=9)).bodies) == [parts[1].id]

    async def test_of_many_at_once_one_merges(self, store: Store, other: Store, clock: FakeClock) -> None:
        for folds in range(5):
            await store.add_statistics([one := part(clock.now())])
            done = await asyncio.gather(
                *(each.fold_statistics(folds, [one.id], [row(folds)]) for each in (store, other) * 3)
            )
            assert sorted(done) == [False] * 5 + [True]

    async def test_a_part_that_is_sent_again_counts_once_also_when_it_was_merged(
        self, store: Store, clock: FakeClock
    ) -> None:
        one = part(clock.now())
        await store.add_statistics([one])
        await store.add_statistics([one])
        assert len((await store.statistics([])).parts) == 1
        assert await store.fold_statistics(0, [one.id], [row(0)])
        await store.add_statistics([one])
        assert list((await store.statistics([])).parts) == []

    async def test_what_was_kept_long_enough_goes(self, store: Store, clock: FakeClock) -> None:
        now = clock.now() + 400 * DAY
        rows = [
            row(now - age - late, grain=grain)
            for grain, age in ((Grain.MINUTE, 2 * DAY), (Grain.HOUR, 15 * DAY), (Grain.DAY, 400 * DAY))
            for late in (0, MINUTE)
        ]
        old, new, merged = part(now - 3 * DAY), part(now - DAY), part(now - HOUR)
        await store.add_statistics([old, new, merged])
        assert await store.fold_statistics(0, [merged.id], rows)
        await store.prune_statistics(now)
        assert set(await store.statistics_rows([one.id for one in rows])) == {one.id for one in rows[::2]}
        left = await store.statistics_parts(limit=9)
        assert (left.folds, list(left.bodies)) == (1, [new.id])
        # What was remembered of a part for long enough is forgotten.
        await store.add_statistics([merged])
        assert len((await store.statistics([])).parts) == 2
