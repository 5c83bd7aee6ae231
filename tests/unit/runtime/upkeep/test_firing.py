"""When the firer looks again, and how it shares the loop with others."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Any, cast

import pytest

from duetime.model.schedule.record import Firing, StoredSchedule
from duetime.model.time import SECOND, Instant
from duetime.model.triggers.base import Trigger
from duetime.runtime.pacing import POLL_SCHEDULES, FleetPacing
from duetime.runtime.upkeep import firing as module
from duetime.runtime.upkeep.firing import ScheduleFirer
from duetime.stores.base import DueSchedules, PulseFindings, Store
from tests.unit.runtime.kit import NoHealth

NOW: Instant = 1_700_000_000 * SECOND


def schedule(at: Instant, *, every: int = 60 * SECOND, **changes: Any) -> StoredSchedule:
    """A schedule that comes at an instant, and at intervals after it."""
    values: dict[str, Any] = {
        "name": "s",
        "task": "work",
        "payload": "{}",
        "trigger": f'{{"type":"every","interval":{every},"start":{at}}}',
        "declared": "",
        "fired_through": at - 1,
        "next_at": at,
        "rev": 1,
    }
    return StoredSchedule(**values | changes)


class Shelf:
    """A store with schedules that are due, and others that are not."""

    now = NOW

    def __init__(self, *due: StoredSchedule, others: Sequence[StoredSchedule] = (), **answer: Any) -> None:
        self.due = due
        self.others = others
        self.answer = {"next_at": None, "resumes_at": None} | answer
        self.fired: list[list[Firing]] = []

    async def schedules(self) -> list[StoredSchedule]:
        return [*self.due, *self.others]

    async def due_schedules(self, *, ahead: int, limit: int) -> DueSchedules:
        return DueSchedules(self.now, list(self.due)[:limit], **self.answer)

    async def fire(self, firings: Sequence[Firing]) -> frozenset[str]:
        self.fired.append(list(firings))
        return frozenset(firing.name for firing in firings)


def firer_of(shelf: Shelf, *, workers: int = 1, watched: bool = False) -> ScheduleFirer:
    crowd = FleetPacing()
    crowd.workers = workers
    return ScheduleFirer(cast("Store", shelf), NoHealth(), fleet=crowd, watched=watched)


async def sleep_after(shelf: Shelf) -> float:
    pause = await firer_of(shelf).round()
    assert pause is not None
    return pause


async def test_with_nothing_to_do_it_looks_again_after_a_while() -> None:
    assert await sleep_after(Shelf()) == POLL_SCHEDULES.alone


async def test_while_heartbeats_look_it_sleeps_until_it_is_told_or_the_next_comes_up() -> None:
    assert await firer_of(Shelf(), watched=True).round() is None
    pause = await firer_of(Shelf(next_at=NOW + 3600 * SECOND), watched=True).round()
    assert pause is not None
    assert 3599 < pause < 3600


@pytest.mark.parametrize(
    ("sight", "wakes"),
    [
        (PulseFindings(None, None, None, orphans=False), False),
        (PulseFindings(NOW, None, None, orphans=True), False),
        (PulseFindings(None, NOW - SECOND, None, orphans=False), True),
        (PulseFindings(None, NOW + SECOND // 2, None, orphans=False), True),
        (PulseFindings(None, NOW + 60 * SECOND, NOW, orphans=False), True),
        (PulseFindings(None, NOW + 60 * SECOND, NOW + 60 * SECOND, orphans=False), False),
    ],
)
async def test_what_a_heartbeat_has_seen_is_looked_at_when_it_comes_up(
    sight: PulseFindings, wakes: bool
) -> None:
    firer = firer_of(Shelf(), watched=True)
    firer.expect(sight, NOW)
    woken = asyncio.ensure_future(firer.wakeup.wait(None))
    await asyncio.wait({woken}, timeout=20 if wakes else 0.05)
    assert woken.done() is wakes
    woken.cancel()


@pytest.mark.parametrize(("workers", "seconds"), [(40, 10), (120, 30), (1_000, 60)])
async def test_with_nothing_to_do_the_workers_of_a_fleet_look_in_turn(workers: int, seconds: int) -> None:
    assert await firer_of(Shelf(), workers=workers).round() == seconds


async def test_it_wakes_shortly_before_the_next_one() -> None:
    assert 4 <= await sleep_after(Shelf(next_at=NOW + 5 * SECOND)) < 5


async def test_it_wakes_shortly_before_the_next_time_of_what_it_has_fired() -> None:
    shelf = Shelf(schedule(NOW, every=3 * SECOND))
    assert 2 <= await sleep_after(shelf) < 3
    assert [firing.made for (firing,) in shelf.fired] == [1]


async def pause_after_its_time(firer: ScheduleFirer, shelf: Shelf) -> float:
    """Let the firer wait for the next one, and tell how long it sleeps after the time has come."""
    shelf.answer["next_at"] = shelf.now + 2 * SECOND
    pause = await firer.round()
    shelf.now += int((pause or 0) * SECOND)
    shelf.answer["next_at"] = shelf.now + 2 * SECOND
    return await firer.round() or 0


async def test_of_many_workers_those_that_come_too_late_leave_the_firing_to_others_for_a_while() -> None:
    shelf = Shelf()
    pauses = [await pause_after_its_time(firer_of(shelf, workers=10_000), shelf) for _ in range(20)]
    assert max(pauses) > 3
    assert max(pauses) <= 2 + POLL_SCHEDULES.alone


async def test_of_few_workers_each_stays_ready() -> None:
    shelf = Shelf()
    assert max([await pause_after_its_time(firer_of(shelf, workers=8), shelf) for _ in range(20)]) < 2


async def test_of_many_workers_the_one_that_fires_stays_ready() -> None:
    shelf = Shelf()
    firer = firer_of(shelf, workers=10_000)
    for _ in range(20):
        shelf.due = (schedule(shelf.now, every=3 * SECOND),)
        pause = await firer.round()
        assert pause is not None
        assert pause < 3
        shelf.now += 3 * SECOND


async def test_it_wakes_when_a_pause_ends_and_not_before() -> None:
    assert await sleep_after(Shelf(resumes_at=NOW + 2 * SECOND)) == 2


async def test_a_schedule_with_a_live_job_is_looked_at_again_soon_and_at_its_instant() -> None:
    assert await sleep_after(Shelf(schedule(NOW + SECOND // 2, live=1))) == 0.25
    assert await sleep_after(Shelf(schedule(NOW + SECOND // 10, live=1))) == 0.1


@pytest.mark.parametrize("stuck", [{"live": 1}, {"trigger": '{"type":"moon"}'}], ids=["live", "unreadable"])
async def test_those_that_have_to_wait_hide_nobody_and_do_not_keep_it_busy(
    stuck: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROUND_LIMIT", 2)
    soon = NOW + SECOND // 2
    shelf = Shelf(*(schedule(soon, **stuck) for _ in range(3)), schedule(soon, name="ready"))
    firer = firer_of(shelf)
    pauses = [await firer.round() for _ in range(3)]
    assert [firing.name for firing in shelf.fired[0]] == ["ready"]
    assert pauses[0] == 0
    assert (pauses[-1] or 0) >= 0.2


async def test_what_one_round_leaves_over_is_taken_up_at_once() -> None:
    assert await sleep_after(Shelf(schedule(NOW, every=SECOND // 100))) == 0.001


async def test_a_pause_that_is_over_is_ended_though_no_time_is_left() -> None:
    over = schedule(NOW, next_at=None, paused_at=NOW - 9, paused_until=NOW - 1, fired_through=NOW + SECOND)
    shelf = Shelf(over)
    await firer_of(shelf).round()
    assert [firing.resumes for (firing,) in shelf.fired] == [True]


async def test_when_it_starts_it_puts_right_the_times_that_nobody_would_look_at() -> None:
    wrong = schedule(NOW + 60 * SECOND, next_at=NOW + 3600 * SECOND)
    shelf = Shelf(others=[wrong, schedule(NOW + 60 * SECOND)])
    firer = firer_of(shelf)
    await firer.round()
    assert [[(f.next_at, f.jobs) for f in firings] for firings in shelf.fired] == [[(NOW + 60 * SECOND, ())]]
    await firer.round()
    assert len(shelf.fired) == 1, "it looks at all of them once"


async def test_what_takes_long_to_decide_is_stored_in_several_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_YIELD_AFTER", -1)
    shelf = Shelf(*(schedule(NOW, name=name) for name in ("a", "b", "c")))
    await firer_of(shelf).round()
    assert [[firing.name for firing in firings] for firings in shelf.fired] == [["a"], ["b"], ["c"]]


async def test_a_trigger_that_cannot_be_read_is_told_once_and_stops_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shelf = Shelf(schedule(NOW, name="broken", trigger='{"type":"moon"}'), schedule(NOW, name="whole"))
    firer = firer_of(shelf)
    with caplog.at_level(logging.ERROR):
        await firer.round()
        await firer.round()
    assert [firing.name for firings in shelf.fired for firing in firings] == ["whole", "whole"]
    assert [record.message.split(":")[0] for record in caplog.records] == [
        "schedule broken waits, since it has a trigger that cannot be read here"
    ]


async def test_a_schedule_that_cannot_be_decided_about_keeps_no_other_from_firing_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shelf = Shelf(schedule(NOW, name="broken", terms="[broken"), schedule(NOW, name="sound"))
    firer = firer_of(shelf)
    await firer.round()
    await firer.round()
    assert [[firing.name for firing in fired] for fired in shelf.fired] == [["sound"], ["sound"]]
    [told] = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert "broken" in told


@pytest.mark.covers("odd-schedule")
async def test_a_schedule_whose_jobs_the_store_refuses_keeps_no_other_from_firing_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Picky(Shelf):
        async def fire(self, firings: Sequence[Firing]) -> frozenset[str]:
            if any(firing.name == "refused" for firing in firings):
                raise ValueError("the value is out of range")
            return await super().fire(firings)

    shelf = Picky(schedule(NOW, name="refused"), schedule(NOW, name="sound"))
    firer = firer_of(shelf)
    await firer.round()
    await firer.round()
    assert [[firing.name for firing in fired] for fired in shelf.fired] == [["sound"], ["sound"]]
    [told] = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert "schedule refused does not fire, since the store refuses" in told


@pytest.mark.covers("odd-schedule", "log-lines")
async def test_what_is_stored_in_a_schedule_cannot_pass_for_a_log_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    forged = "x\n2026-01-01 00:00:00 ERROR duetime: all is lost\x1b[2J"
    spec = json.dumps({"type": "cron", "expression": forged, "tz": forged})
    await firer_of(Shelf(schedule(NOW, name=forged, trigger=spec))).round()
    [told] = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert told.isprintable()
    assert len(told) < 1_000


async def test_a_rule_that_fails_at_the_start_keeps_no_other_from_being_put_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(_: Trigger, after: Instant, *, made: int) -> Instant | None:
        if after == 1:
            raise OverflowError
        return NOW + made

    monkeypatch.setattr("duetime.model.schedule.firing.next_look_after", fails)
    shelf = Shelf(others=[schedule(2, name="broken"), schedule(NOW, name="moved", next_at=NOW + 9)])
    await firer_of(shelf).round()
    assert [[firing.name for firing in fired] for fired in shelf.fired] == [["moved"]]


async def test_triggers_of_schedules_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_TRIGGERS", 3)
    shelf = Shelf()
    firer = firer_of(shelf)
    for number in range(9):
        shelf.due = (schedule(NOW - number),)
        await firer.round()
        assert firer._read.cache_info().currsize <= 3
    assert len(shelf.fired) == 9
