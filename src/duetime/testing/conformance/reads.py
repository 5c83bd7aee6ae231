"""What people look at is what there is, in a useful order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from duetime.model.ids import new_job_id
from duetime.model.job import JobId, JobKind, JobTerms, Key
from duetime.model.outcome import Cancelled, Failed, Succeeded
from duetime.model.queues import Registry, registry_of
from duetime.model.states import State
from duetime.model.time import SECOND
from duetime.stores.base import BEHIND_ALL_IDS, DueSchedules, JobFilter, NextDue, QueueOutlook, Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import (
    TASK,
    declare,
    finish,
    hire,
    job,
    occurrence_job,
    put,
    schedule,
    take,
    take_one,
)
from duetime.testing.conformance.suite import MakeStore, StoreSuite


class TestReads(StoreSuite):
    """`get`, `find`, `attempts`, `schedules`, `workers` and `counts`."""

    async def test_an_empty_store_has_nothing(self, store: Store, clock: FakeClock) -> None:
        assert await store.get([new_job_id()]) == []
        assert await store.get([]) == []
        assert await store.find(JobFilter()) == []
        assert await store.attempts(new_job_id()) == []
        assert await store.upcoming(10) == []
        assert await store.schedules() == []
        assert await store.workers() == []
        assert await store.counts() == {}
        assert await store.due_schedules(ahead=0, limit=1) == DueSchedules(clock.now(), [], None)

    async def test_jobs_come_in_the_order_asked(self, store: Store) -> None:
        a, b, c = await store.enqueue([job(), job(), job()])
        assert [record.id for record in await store.get([c, "nothing", a, b])] == [c, a, b]

    async def test_a_page_is_newest_first_and_the_next_one_follows_it(self, store: Store) -> None:
        stored = await store.enqueue([job() for _ in range(7)])
        pages: list[list[str]] = []
        before: str | None = None
        while page := [record.id for record in await store.find(JobFilter(before=before, limit=3))]:
            pages.append(page)
            before = page[-1]
        assert [len(page) for page in pages] == [3, 3, 1]
        assert [job_id for page in pages for job_id in page] == stored[::-1]

    async def test_the_jobs_whose_ids_begin_alike_come_first_behind_that_beginning(
        self, store: Store
    ) -> None:
        """However many there are: a beginning of an id is looked up by it."""
        ids = [f"{start}{n:031x}" for start in "0123" for n in (0, 1, 2**124 - 1)]
        await store.enqueue([job(id=job_id) for job_id in ids])
        for start, found in [
            ("1", ids[3:6][::-1]),
            ("1f", [ids[5]]),
            ("1" + "0" * 30, ids[3:5][::-1]),
            (ids[4], [ids[4]]),
            ("17", []),
            ("4", []),
        ]:
            page = await store.find(JobFilter(before=start + BEHIND_ALL_IDS, limit=4))
            assert [record.id for record in page if record.id.startswith(start)] == found
            assert [record.id for record in page[: len(found)]] == found

    async def test_a_page_has_fifty_jobs_unless_told_otherwise(self, store: Store) -> None:
        await store.enqueue([job() for _ in range(60)])
        assert len(await store.find(JobFilter())) == 50

    async def test_filters_narrow_a_page_one_by_one_and_together(self, store: Store) -> None:
        await hire(store, "w1")
        plain, task, queue, scheduled, both = await store.enqueue(
            [
                job(),
                job(task="report"),
                job(queue="mail"),
                occurrence_job("s", 5),
                job(task="report", queue="mail", state=State.SKIPPED),
            ]
        )
        running = {claim.job_id for claim in await take(store)}
        assert running == {plain, scheduled}

        async def found(where: JobFilter) -> list[str]:
            return [record.id for record in await store.find(where)]

        assert await found(JobFilter(task="report")) == [both, task]
        assert await found(JobFilter(queue="mail")) == [both, queue]
        assert await found(JobFilter(schedule="s")) == [scheduled]
        assert await found(JobFilter(states=frozenset({State.RUNNING}))) == [scheduled, plain]
        assert await found(JobFilter(task="report", queue="mail", states=frozenset({State.SKIPPED}))) == [
            both
        ]
        assert await found(JobFilter(task=TASK, states=frozenset({State.RUNNING}), before=scheduled)) == [
            plain
        ]
        assert await found(JobFilter(queue="nowhere")) == []

    @pytest.mark.parametrize(
        "where",
        [
            JobFilter(queue="rare"),
            JobFilter(states=frozenset({State.PENDING}), queue="rare"),
            JobFilter(states=frozenset({State.SKIPPED}), queue="rare"),
            JobFilter(schedule="s", queue="rare"),
        ],
        ids=["all", "live", "unsuccessful", "scheduled"],
    )
    async def test_a_search_goes_on_where_it_was_to_stop(self, store: Store, where: JobFilter) -> None:
        state = State.SKIPPED if State.SKIPPED in where.states else State.PENDING
        queues = ["rare", *["common"] * 9] * 4
        jobs = [occurrence_job("s", n, queue=queue, state=state) for n, queue in enumerate(queues)]
        ids = await store.enqueue(jobs)
        wanted = [job_id for job_id, queue in zip(ids, queues, strict=True) if queue == "rare"]
        found: list[str] = []
        before: str | None = None
        for _ in range(len(ids)):
            page = await store.find(replace(where, before=before, limit=3, look_at=5))
            found += [one.id for one in page]
            if page.looked_to is None:
                break
            assert len(page) < 3
            before = page.looked_to
        assert before is not None
        assert found == sorted(wanted, reverse=True)

    @pytest.mark.parametrize("where", [JobFilter(states=frozenset({State.PENDING})), JobFilter(schedule="s")])
    async def test_what_is_rare_and_has_an_index_is_found_at_once(
        self, store: Store, where: JobFilter
    ) -> None:
        rare = [await put(store, schedule="s", occurrence=n, delay=5) for n in range(2)]
        await store.enqueue([job(state=State.SKIPPED) for _ in range(40)])
        page = await store.find(replace(where, limit=3, look_at=5))
        assert ([one.id for one in page], page.looked_to) == (rare[::-1], None)

    async def test_what_runs_is_found_among_many_that_wait(self, store: Store) -> None:
        await hire(store, "w1", "w2")
        await store.enqueue([job() for _ in range(4)])
        claims = [*await take(store, limit=2), *await take(store, "w2", limit=2)]
        await store.enqueue([job(delay=9) for _ in range(40)])
        newest = sorted((claim.job_id for claim in claims), reverse=True)
        for where in (JobFilter(states=frozenset({State.RUNNING})), JobFilter(registry=Registry.ACTIVE)):
            page = await store.find(replace(where, limit=3, look_at=5))
            assert ([one.id for one in page], page.looked_to) == (newest[:3], None)
            rest = await store.find(replace(where, limit=3, look_at=5, before=newest[2]))
            assert [one.id for one in rest] == newest[3:]

    async def test_schedules_come_by_name(self, store: Store) -> None:
        names = ["b", "a", "Z", "10", "9", "_"]
        await declare(store, *[schedule(name, next_at=None, fired_through=0) for name in names])
        assert [record.name for record in await store.schedules()] == sorted(names)

    async def test_schedules_come_in_pages_perhaps_of_some_queues(self, store: Store) -> None:
        queues = {"a": "mail", "B": "default", "c": "mail", "é": "mail", "z": "print"}
        new = [schedule(name, next_at=None, fired_through=0, queue=queue) for name, queue in queues.items()]
        await declare(store, *new)

        async def names(**asked: Any) -> list[str]:
            return [record.name for record in await store.schedules(**asked)]

        assert await names(limit=2) == ["B", "a"]
        assert await names(after="a", limit=2) == ["c", "z"]
        assert await names(after="c") == ["z", "é"]
        assert await names(after="é", limit=9) == []
        assert await names(queues=["mail"]) == ["a", "c", "é"]
        assert await names(queues=["mail", "print"], after="a", limit=2) == ["c", "z"]
        assert await names(queues=["nowhere"]) == []
        assert await names(queues=[]) == []

    async def test_workers_come_newest_first(self, store: Store, clock: FakeClock) -> None:
        for worker in ("w2", "w1", "w3"):
            await hire(store, worker)
            clock.advance(1)
        assert [row.id for row in await store.workers()] == ["w3", "w1", "w2"]

    async def test_jobs_are_counted_by_queue_and_state(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await store.enqueue([job(), job(), job(), job(queue="mail", delay=5)])
        claim, _running = await take(store, limit=2)
        await finish(store, claim, now=clock.now())
        assert await store.counts() == {
            ("default", State.SUCCEEDED): 1,
            ("default", State.RUNNING): 1,
            ("default", State.PENDING): 1,
            ("mail", State.PENDING): 1,
        }


WAITING = frozenset({State.PENDING})
SKIPPED = frozenset({State.SKIPPED})


class TestLists(StoreSuite):
    """`find` by what jobs carry and where they are, among few and among many."""

    async def test_jobs_are_found_by_key_tag_and_time(self, store: Store, clock: FakeClock) -> None:
        old = await put(store, key=Key(value="k"), terms=JobTerms(tags=("a", "bc")))
        clock.advance(1)
        await put(store, terms=JobTerms(tags=("b", "a")))
        plain = await put(store)
        tagged = (await store.find(JobFilter(tag="a")))[::-1]
        assert [record.tags for record in tagged] == ["|a|bc|", "|b|a|"]
        assert await found(store, tag="bc") == [old]
        assert await found(store, tag="c") == []
        assert await found(store, key="k") == [old]
        assert await found(store, key="K") == []
        assert (await found(store, since=clock.now()))[0] == plain
        assert len(await found(store, since=clock.now())) == 2
        assert await found(store, since=clock.now() + 1) == []
        assert len(await found(store, since=clock.now() - SECOND)) == 3

    async def test_jobs_are_found_that_were_enqueued_before_a_time(
        self, store: Store, clock: FakeClock
    ) -> None:
        old = await put(store)
        clock.advance(1)
        new = await put(store)
        assert await found(store, until=clock.now() - SECOND) == []
        assert await found(store, until=clock.now()) == [old]
        assert await found(store, until=clock.now() + 1) == [new, old]
        assert await found(store, since=clock.now(), until=clock.now() + 1) == [new]

    async def test_jobs_are_found_that_are_in_one_of_several_states(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        ended = await put(store)
        await finish(store, await take_one(store), now=clock.now())
        failed = await put(store)
        await finish(store, await take_one(store), Failed(error="boom"), now=clock.now())
        skipped = await put(store, state=State.SKIPPED)
        running = await put(store)
        await take_one(store)
        waiting = await put(store)
        of_schedule = await put(store, schedule="s")
        asked: tuple[tuple[set[State], list[str]], ...] = (
            ({State.PENDING, State.RUNNING}, [of_schedule, waiting, running]),
            ({State.FAILED, State.SKIPPED}, [skipped, failed]),
            ({State.FAILED, State.SUCCEEDED}, [failed, ended]),
            ({State.RUNNING, State.FAILED}, [running, failed]),
            (set(State), [of_schedule, waiting, running, skipped, failed, ended]),
        )
        for states, expected in asked:
            assert await found(store, states=frozenset(states)) == expected
        either = frozenset({State.PENDING, State.FAILED})
        assert await found(store, states=either, schedule="s") == [of_schedule]
        assert await found(store, states=either, until=clock.now()) == []

    async def test_what_a_schedule_made_is_told_from_the_rest(self, store: Store) -> None:
        plain, own, by_hand, missed, last = await store.enqueue(
            [
                job(),
                occurrence_job("s", 5),
                job(schedule="s"),
                occurrence_job("r", 5, state=State.SKIPPED),
                job(parent="x"),
            ]
        )
        assert await found(store, kind=JobKind.SCHEDULED) == [missed, by_hand, own]
        assert await found(store, kind=JobKind.ONE_OFF) == [last, plain]
        assert await found(
            store, kind=JobKind.SCHEDULED, states=frozenset({State.PENDING}), schedule="s"
        ) == [by_hand, own]
        assert await found(store, kind=JobKind.ONE_OFF, schedule="s") == []

    async def test_a_time_is_the_stores_own_even_if_ids_are_of_another(
        self, make_store: MakeStore, clock: FakeClock
    ) -> None:
        store = await make_store(clock)
        clock.advance("20000d")
        job_id = await put(store)
        assert await found(store, since=clock.now()) == [job_id]

    @pytest.mark.parametrize("behind", [0, 2_500])
    async def test_each_job_is_in_the_registry_that_the_model_says(
        self, store: Store, clock: FakeClock, behind: int
    ) -> None:
        """However many jobs have been enqueued since."""
        await hire(store, "w1")
        await one_of_each(store, clock)
        await store.enqueue([job(task="other") for _ in range(behind)])
        records = await store.find(JobFilter(task=TASK, limit=100))
        for registry in Registry:
            expected = [
                record.id
                for record in records
                if registry_of(
                    record.state, due=record.due_at <= clock.now(), started=record.started_at is not None
                )
                is registry
            ]
            assert expected, f"no job is {registry}"
            assert await found(store, task=TASK, registry=registry) == expected
        for state in State:
            expected = [record.id for record in records if record.state is state]
            assert await found(store, task=TASK, states=frozenset({state})) == expected

    @pytest.mark.parametrize("where", [{"states": WAITING}, {"schedule": "s"}, {"states": SKIPPED}])
    async def test_pages_follow_each_other_through_what_is_seldom(
        self, store: Store, where: dict[str, Any]
    ) -> None:
        """Some of it is among the newest jobs, some far behind them."""
        (state,) = where.get("states", SKIPPED)
        wanted: list[JobId] = []
        for _ in range(3):
            some = [
                occurrence_job("s", number, state=state) for number in range(len(wanted), len(wanted) + 3)
            ]
            wanted += await store.enqueue(some)
            await store.enqueue([job(state=State.SUCCEEDED) for _ in range(1_200)])
        seen: list[JobId] = []
        while len(seen) <= len(wanted):
            page = await found(store, **where, limit=2, before=seen[-1] if seen else None)
            if not page:
                break
            seen += page
        assert seen == wanted[::-1]


async def found(store: Store, **where: Any) -> list[JobId]:
    """The ids of a page."""
    return [record.id for record in await store.find(JobFilter(**where))]


async def one_of_each(store: Store, clock: FakeClock) -> None:
    """Make jobs of every kind that people tell apart."""
    for outcome in (Succeeded("1"), Failed(error="boom"), Cancelled("stopped"), None):
        await put(store)
        claim = await take_one(store)
        if outcome is not None:
            await finish(store, claim, outcome, now=clock.now())
    await put(store, delay=SECOND)
    await take_one(store, ahead=2 * SECOND)
    await store.cancel([await put(store)], reason="off")
    await put(store, state=State.SKIPPED)
    await put(store, delay=60 * SECOND)
    await put(store)
    await put(store, terms=JobTerms(gate="narrow"))


class TestNextDue(StoreSuite):
    """`next_due`."""

    async def test_the_earliest_of_all_queues_and_priorities_counts(
        self, store: Store, clock: FakeClock
    ) -> None:
        now = clock.now()
        await store.enqueue([job(queue="a", priority=0, delay=9), job(queue="b", priority=9, delay=3)])
        assert await store.next_due(["a", "b"], [TASK]) == NextDue(now, now + 3)
        assert await store.next_due(["a"], [TASK]) == NextDue(now, now + 9)

    async def test_what_is_overdue_is_told_with_its_time(self, store: Store, clock: FakeClock) -> None:
        await put(store, due_at=7)
        assert await store.next_due(["default"], [TASK]) == NextDue(clock.now(), 7)

    async def test_nothing_to_wait_for_is_told(self, store: Store, clock: FakeClock) -> None:
        nothing = NextDue(clock.now(), None)
        await hire(store, "w1")
        await put(store)
        await take_one(store)
        await store.enqueue([job(queue="other"), job(task="stranger"), job(state=State.SKIPPED)])
        assert await store.next_due(["default"], [TASK]) == nothing
        assert await store.next_due([], [TASK]) == nothing
        assert await store.next_due(["other"], []) == nothing

    async def test_a_paused_queue_is_not_waited_for(self, store: Store, clock: FakeClock) -> None:
        await put(store)
        await store.pause_queue("default", reason=None)
        assert await store.next_due(["default"], [TASK]) == NextDue(clock.now(), None)

    async def test_a_job_put_off_is_told_with_its_new_time(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await put(store)
        claim = await take_one(store)
        later = clock.now() + SECOND
        await finish(store, claim, now=clock.now(), state=State.PENDING, finished_at=None, due_at=later)
        assert await store.next_due(["default"], [TASK]) == NextDue(clock.now(), later)

    async def test_what_falls_due_first_comes_first_whatever_its_queue_priority_or_limit(
        self, store: Store, clock: FakeClock
    ) -> None:
        await hire(store, "w1")
        now = clock.now()
        running, last, gated, first, second = await store.enqueue(
            [
                job(due_at=now),
                job(due_at=now + 5 * SECOND),
                job(due_at=now + 4 * SECOND, terms=JobTerms(gate="g")),
                job(due_at=now + 2 * SECOND, queue="mail", priority=9),
                job(due_at=now + 3 * SECOND, priority=0),
            ]
        )
        assert (await take_one(store)).job_id == running
        assert [record.id for record in await store.upcoming(10)] == [first, second, gated, last]
        assert [record.id for record in await store.upcoming(2)] == [first, second]

    async def test_the_records_of_a_schedule_up_to_an_instant_come_latest_first(
        self, store: Store, clock: FakeClock
    ) -> None:
        now = clock.now()
        first, skip, last, _, _ = await store.enqueue(
            [
                occurrence_job("s", now),
                occurrence_job("s", now + 1, state=State.SKIPPED, reason="overlap"),
                occurrence_job("s", now + 2),
                occurrence_job("s", now + 3),
                occurrence_job("other", now + 1),
            ]
        )

        async def ids(**changes: Any) -> list[JobId]:
            query: dict[str, Any] = {"until": now + 2, "limit": 9} | changes
            return [record.id for record in await store.past_occurrences("s", **query)]

        assert await ids() == [last, skip, first]
        assert await ids(limit=2) == [last, skip]
        assert await ids(made=True) == [last, first]
        assert await ids(until=now + 1, made=True) == [first]
        assert await ids(until=now - 1) == []

    async def test_the_outlook_of_a_queue_tells_the_time_and_the_pause(
        self, store: Store, clock: FakeClock
    ) -> None:
        assert await store.outlook("mail") == QueueOutlook(clock.now(), None, None)
        await store.pause_queue("mail", reason="relay down")
        assert await store.outlook("mail") == QueueOutlook(clock.now(), clock.now(), "relay down")
        assert await store.outlook("default") == QueueOutlook(clock.now(), None, None)
