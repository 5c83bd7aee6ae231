from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import msgspec
import pytest

from benchmarks.statements import Sent, tapped
from duetime import Limit, Scheduler, current_job, every
from duetime.model.schedule.record import ScheduleUpdate, StoredSchedule
from duetime.model.time import from_datetime
from duetime.model.triggers.base import Trigger
from duetime.runtime.running import slots as slots_module
from duetime.runtime.service import ServiceHealth
from duetime.runtime.upkeep.firing import ScheduleFirer
from duetime.scheduler.task import AsyncTask
from duetime.testing import FakeClock

SLOTS = 50
BATCHES = 4

SETTLE = ("settle", "succeed")
OPEN = ("tables", "schema_version", "register", "retire", "drop_commands", "announced_of", "announce")
"""What a worker sends once."""
BEAT = ("pulse", "held_by")
"""What one heartbeat sends."""
WATCH = ("next_due", "peers", "forsaken", "is_alive", "next_queue", "due_in_queue", "due_at_gates")
"""What a worker reads now and then, however many jobs there are."""

FIRING = [("read", "due_schedules"), ("read", "next_schedule"), ("write", "fire"), ("write", "enqueue")]
"""What a round sends that fires schedules, any number of them."""
MOMENT = datetime(2024, 1, 1, tzinfo=UTC)


class Gated:
    """A scheduler whose jobs wait at a gate, so that batches begin and end as a test says."""

    def __init__(self, url: str) -> None:
        self.scheduler = Scheduler(url)
        self.started = 0
        self.stays_open = False
        self.says: Callable[[], object] = lambda: None
        self._gate = asyncio.Event()

        @self.scheduler.task(name="wait")
        async def wait() -> None:
            self.started += 1
            self.says()
            if not self.stays_open:
                await self._gate.wait()

        self.wait: AsyncTask[[], None] = wait

    async def enqueue(self, count: int) -> None:
        await self.scheduler.enqueue_many([self.wait.call() for _ in range(count)])

    def has_started(self, count: int) -> bool:
        return self.started == count

    def open_gate(self) -> None:
        """Let through whoever waits now; those that come later wait again."""
        gate, self._gate = self._gate, asyncio.Event()
        gate.set()


@asynccontextmanager
async def listening(gated: Gated) -> AsyncIterator[list[Sent]]:
    async with gated.scheduler:
        yield tapped(gated.scheduler.store)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - statements are noted in the driver's own thread
            await asyncio.sleep(0.001)


def written(sent: list[Sent]) -> Counter[str]:
    return Counter(name for _, kind, name in sent if kind == "write")


def counted(sent: list[Sent]) -> tuple[int, int]:
    """How many claims and how many settlements were sent."""
    names = written(sent)
    return names["claim"], sum(names[name] for name in SETTLE)


def are_settled(sent: list[Sent], batches: int) -> bool:
    return counted(sent)[1] == batches


def have_come(sent: list[Sent], *names: str) -> bool:
    """Whether these statements were sent in this order, whatever else came between."""
    wanted = list(names)
    for _, _, name in sent:
        if wanted and name == wanted[0]:
            wanted.pop(0)
    return not wanted


async def test_a_call_of_enqueue_many_is_one_statement_however_many_jobs(hearing_sql_url: str) -> None:
    gated = Gated(hearing_sql_url)
    async with listening(gated) as sent:
        await gated.enqueue(100)
        [(_, kind, name)] = sent
        assert (kind, name.removesuffix("_fresh").removesuffix("_alike")) == ("write", "enqueue")


async def test_a_single_enqueue_is_one_statement(hearing_sql_url: str) -> None:
    gated = Gated(hearing_sql_url)
    async with listening(gated) as sent:
        await gated.wait.enqueue()
        [(_, kind, name)] = sent
        assert (kind, name.removesuffix("_fresh")) == ("write", "enqueue_one")


async def test_a_key_costs_one_statement_more(hearing_sql_url: str) -> None:
    gated = Gated(hearing_sql_url)
    async with listening(gated) as sent:
        await gated.scheduler.enqueue_many(
            [gated.wait.options(key=f"k{number}").call() for number in range(100)]
        )
        assert [name for _, _, name in sent] == ["enqueue", "key_holders"]


async def test_a_batch_of_jobs_costs_one_claim_and_one_settlement(
    hearing_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without taking jobs in advance, batches begin and end as the gate says.
    monkeypatch.setattr(slots_module, "_SHORT_RUN", -1)
    gated = Gated(hearing_url)
    async with listening(gated) as sent:
        await gated.enqueue(SLOTS * BATCHES)
        sent.clear()
        async with gated.scheduler.worker(concurrency=SLOTS):
            for batch in range(BATCHES):
                await until(partial(gated.has_started, SLOTS * (batch + 1)))
                assert counted(sent) == (batch + 1, batch)
                gated.open_gate()
                await until(partial(are_settled, sent, batch + 1))
        claims, settlements = counted(sent)
        assert settlements == BATCHES
        # One more may have looked for more jobs and found none.
        assert claims in {BATCHES, BATCHES + 1}


async def test_a_job_that_runs_at_once_costs_no_statement_but_its_claim_and_its_settlement(
    hearing_sql_url: str,
) -> None:
    gated = Gated(hearing_sql_url)
    async with listening(gated) as sent:
        await gated.enqueue(SLOTS)
        sent.clear()
        async with gated.scheduler.worker(concurrency=SLOTS, schedules=False, retention=None):
            await until(partial(gated.has_started, SLOTS))
            gated.open_gate()
            await until(partial(are_settled, sent, 1))
        taking = set() if hearing_sql_url.startswith("postgresql") else {"take"}
        # A worker writes its statistics when it stops, whatever it ran.
        assert {name for _, _, name in sent} - {*OPEN, *BEAT, *WATCH} - {"add_statistics"} == {
            "claim",
            "succeed",
            *taking,
        }


async def test_the_logs_of_a_whole_batch_cost_one_statement_more(hearing_sql_url: str) -> None:
    gated = Gated(hearing_sql_url)
    gated.says = lambda: logging.getLogger("app").warning("hello")
    gated.stays_open = True
    async with listening(gated) as sent:
        await gated.enqueue(SLOTS)
        sent.clear()
        async with gated.scheduler.worker(concurrency=SLOTS, schedules=False, retention=None):
            await until(partial(gated.has_started, SLOTS))
            await until(lambda: written(sent)["add_logs"] >= 1)
        names = written(sent)
        assert names["add_logs"] == sum(names[name] for name in SETTLE)
        assert names["note_progress"] == 0


async def test_the_progress_of_all_running_jobs_is_one_statement(hearing_sql_url: str) -> None:
    gated = Gated(hearing_sql_url)
    gated.says = lambda: current_job().progress(0.5)
    async with listening(gated) as sent:
        await gated.enqueue(SLOTS)
        sent.clear()
        async with gated.scheduler.worker(concurrency=SLOTS, schedules=False, retention=None):
            await until(lambda: written(sent)["note_progress"] >= 1)
            assert gated.has_started(SLOTS)
            names = written(sent)
            gated.open_gate()
        assert (names["note_progress"], names["add_logs"]) == (1, 0)


async def test_short_jobs_are_taken_in_advance_in_claims_larger_than_there_are_slots(
    hearing_url: str,
) -> None:
    gated = Gated(hearing_url)
    gated.stays_open = True
    jobs = 50 * SLOTS
    async with listening(gated) as sent:
        await gated.enqueue(jobs)
        sent.clear()
        async with gated.scheduler.worker(concurrency=SLOTS, retention=None):
            await until(partial(gated.has_started, jobs))
        claims, settlements = counted(sent)
        # Until it is known that they are short, each claim is for the slots that are free.
        assert claims <= jobs // SLOTS // 2
        assert settlements <= jobs // SLOTS + claims


async def test_a_worker_whose_tasks_have_no_limits_never_asks_for_limited_jobs(hearing_sql_url: str) -> None:
    gated = Gated(hearing_sql_url)
    gated.stays_open = True
    async with listening(gated) as sent, gated.scheduler.worker(concurrency=SLOTS, retention=None, lease=3):
        for batch in range(1, BATCHES + 1):
            await gated.enqueue(SLOTS)
            await until(partial(gated.has_started, SLOTS * batch))
        await until(lambda: written(sent)["pulse"] >= 2)
        assert not {"limited_queues", "waiting_gates", "lock_gates"} & {name for _, _, name in sent}


async def test_a_full_gate_is_looked_at_without_a_write_and_without_a_rate_no_start_is_noted(
    hearing_sql_url: str,
) -> None:
    scheduler = Scheduler(hearing_sql_url)
    started, gate = asyncio.Event(), asyncio.Event()

    @scheduler.task(name="wait", limit=Limit(1, by="key"))
    async def wait(key: int = 1) -> None:
        started.set()
        await gate.wait()

    async with scheduler:
        sent = tapped(scheduler.store)
        async with scheduler.worker(concurrency=SLOTS, retention=None):
            await wait.enqueue()
            await started.wait()
            await until(lambda: have_come(sent, "take_limited", "next_due"))
            sent.clear()
            await scheduler.enqueue_many([wait.call() for _ in range(BATCHES)])
            await until(lambda: have_come(sent, "enqueue", "waiting_gates", "next_due"))
            names = {name for _, _, name in sent}
            gate.set()
            await until(lambda: [name for _, _, name in sent].count("take_limited") == BATCHES)
    assert not {"lock_gates", "running_under", "at_gates"} & names
    assert "note_gates" not in {name for _, _, name in sent}


@pytest.mark.covers("limit-starves")
@pytest.mark.parametrize("shut", ["full gate", "rate used up", "full queue", "paused queue"])
async def test_what_may_not_start_is_not_asked_for_between_the_usual_looks(
    hearing_sql_url: str, shut: str
) -> None:
    scheduler = Scheduler(hearing_sql_url)
    started, gate = asyncio.Event(), asyncio.Event()
    limits: dict[str, dict[str, Any]] = {"full gate": {"limit": 1}, "rate used up": {"rate": "1/1h"}}

    @scheduler.task(name="wait", **limits.get(shut, {}))
    async def wait() -> None:
        started.set()
        await gate.wait()

    async with scheduler:
        sent = tapped(scheduler.store)
        if "queue" in shut:
            await scheduler.queues.limit("default", 1)
        async with scheduler.worker(concurrency=SLOTS, retention=None, schedules=False, lease=3):
            await wait.enqueue()
            await started.wait()
            if shut == "paused queue":
                await scheduler.queues.pause("default")
            sent.clear()
            await scheduler.enqueue_many([wait.call() for _ in range(BATCHES)])
            await until(lambda: have_come(sent, "waiting_gates", "next_due"))
            await until(lambda: written(sent)["pulse"] >= 2)
            names = Counter(name for _, _, name in sent)
            gate.set()
    # One for each hint, of which there are few, and the usual look that may fall into this time.
    assert names["waiting_gates"] <= 6
    assert names["next_due"] <= 8
    assert not {"lock_gates", "lock_queues", "take_limited"} & set(names)


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("count", [1, 100])
async def test_a_round_that_fires_schedules_costs_the_same_statements_however_many(
    hearing_sql_url: str, count: int
) -> None:
    clock = FakeClock()
    async with Scheduler(hearing_sql_url, clock=clock) as scheduler:
        firer = await firing(scheduler, [every("1h", start=MOMENT) for _ in range(count)])
        sent = tapped(scheduler.store)
        await firer.round()
        assert [(kind, name) for _, kind, name in sent] == FIRING
        assert len(await scheduler.jobs.list(limit=1000)) == count


@pytest.mark.usefixtures("unhurried")
async def test_schedules_that_come_soon_after_one_another_share_a_round(hearing_sql_url: str) -> None:
    clock = FakeClock(MOMENT - timedelta(seconds=10))
    soon = [every("1h", start=MOMENT + timedelta(milliseconds=2 * n)) for n in range(100)]
    async with Scheduler(hearing_sql_url, clock=clock) as scheduler:
        firer = await firing(scheduler, soon)
        wait = await firer.round()
        assert wait is not None
        sent = tapped(scheduler.store)
        clock.advance(wait)
        assert clock.now() < from_datetime(MOMENT), "it would come too late for the first"
        await firer.round()
        assert [(kind, name) for _, kind, name in sent] == FIRING
        assert len(await scheduler.jobs.list(limit=1000)) == len(soon)


async def test_short_jobs_that_fall_due_one_after_the_other_share_claims_looks_and_settlements(
    hearing_url: str,
) -> None:
    count = 60
    gated = Gated(hearing_url)
    gated.stays_open = True
    async with listening(gated) as sent:
        first = datetime.now(UTC) + timedelta(seconds=0.3)
        moments = [first + timedelta(milliseconds=5 * n) for n in range(count)]
        await gated.scheduler.enqueue_many([gated.wait.options(at=at).call() for at in moments])
        async with gated.scheduler.worker(concurrency=count):
            await until(lambda: gated.has_started(count))
    claims, settlements = counted(sent)
    assert settlements <= count / 2
    assert claims + Counter(name for _, _, name in sent)["next_due"] <= count / 2


async def test_who_is_ahead_of_a_fast_stream_asks_once_for_many_jobs(hearing_url: str) -> None:
    count = 500
    gated = Gated(hearing_url)
    gated.stays_open = True
    async with listening(gated) as sent:
        first = datetime.now(UTC) + timedelta(seconds=0.5)
        moments = [first + timedelta(milliseconds=n) for n in range(count)]
        await gated.scheduler.enqueue_many([gated.wait.options(at=at).call() for at in moments])
        async with gated.scheduler.worker(concurrency=100):
            await until(lambda: gated.has_started(count))
    claims, _ = counted(sent)
    assert claims + Counter(name for _, _, name in sent)["next_due"] <= count / 4


async def firing(scheduler: Scheduler, triggers: Sequence[Trigger]) -> ScheduleFirer:
    """Store schedules and return who fires them, past what is done once."""
    schedules = [
        StoredSchedule(
            name=f"schedule-{number}",
            task="wait",
            payload="{}",
            trigger=msgspec.json.encode(trigger.to_spec()).decode(),
            declared="",
            fired_through=0,
            next_at=trigger.after(0),
        )
        for number, trigger in enumerate(triggers)
    ]
    firer = ScheduleFirer(scheduler.store, ServiceHealth())
    await firer.round()
    await scheduler.store.write_schedules(
        [ScheduleUpdate(before=None, after=schedule) for schedule in schedules]
    )
    return firer


@pytest.mark.covers("idle-writes")
async def test_an_idle_worker_sends_nothing_but_one_statement_for_each_heartbeat(
    hearing_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Every heartbeat looks for everything, and each of three comes long after what a worker does at its start.
    gated = Gated(hearing_url)
    async with listening(gated) as sent, gated.scheduler.worker(lease=3, retention=None):
        # The first comes right after the start, and the second may.
        await until(lambda: written(sent)["pulse"] >= 3)
        sent.clear()
        await until(lambda: written(sent)["pulse"] >= 3)
        assert [(kind, name) for _, kind, name in sent] == [("write", "pulse")] * 3


async def test_schedules_that_are_declared_again_as_they_were_cost_two_reads_and_no_write(
    hearing_sql_url: str,
) -> None:
    gated = Gated(hearing_sql_url)
    for number in range(100):
        gated.scheduler.schedule(every("1h"), name=f"s{number}")(gated.wait)
    async with listening(gated) as sent:
        await gated.scheduler.put_declared()
        assert written(sent) == {"add_schedules": 1, "add_entries": 1}
        sent.clear()
        await gated.scheduler.put_declared()
        assert [name for _, _, name in sent] == ["clock", "get_schedules"]
