"""Figures over time, as clients read them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from duetime import Scheduler, cron
from duetime.errors import InvalidDuration, InvalidOption, InvalidTime
from duetime.model.ids import new_job_id
from duetime.model.statistics import PART, CellKey, StatisticsRow, Sums, tally, write_cells
from duetime.model.stored.audit import deployment
from duetime.model.time import MINUTE
from duetime.runtime.settling.statistics import fold
from duetime.testing import FakeClock, drain

NOON = datetime(2030, 1, 31, 12, 0, tzinfo=UTC)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOON)


@pytest.fixture
async def scheduler(sqlite_url: str, clock: FakeClock) -> AsyncIterator[Scheduler]:
    async with Scheduler(sqlite_url, clock=clock) as opened:
        opened.task(name="greet", queue="mail", retries=0)(greet)
        yield opened


def greet() -> None: ...


async def count(scheduler: Scheduler, *outcomes: str, schedule: str | None = None) -> None:
    """Note runs of two seconds each, as a worker does whose runs end now."""
    now = await scheduler.store.now()
    sums = Sums({word: outcomes.count(word) for word in outcomes})
    for _ in outcomes:
        tally(sums.wait, 1_000_000)
        tally(sums.run, 2_000_000)
        if schedule is not None:
            tally(sums.lateness, 500_000)
    body = write_cells([(CellKey(now - now % MINUTE, "greet", "mail", schedule), sums)])
    await scheduler.store.add_statistics(
        [StatisticsRow(f"part|{new_job_id()}", "part", PART, "w", now, body)]
    )


async def deploy(scheduler: Scheduler, release: str) -> None:
    """Note what every worker of a release notes."""
    await scheduler.store.enqueue([], entries=[deployment(release, worker="w")])


async def test_runs_are_counted_by_outcome_at_the_time_at_which_they_ended(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    await count(scheduler, "succeeded", "failed")
    clock.advance("10m")
    await count(scheduler, "succeeded", "cancelled")
    stats = await scheduler.stats.tasks("greet", since="-1h", step="5m")
    assert stats.total.outcomes == {"cancelled": 1, "failed": 1, "succeeded": 2}
    told = {point.at: point.outcomes for point in stats.points if point.outcomes}
    assert told == {
        NOON: {"failed": 1, "succeeded": 1},
        NOON + timedelta(minutes=10): {"cancelled": 1, "succeeded": 1},
    }
    assert (stats.kind, stats.name, stats.step) == ("task", "greet", 300)
    assert (stats.since, stats.until) == (NOON - timedelta(minutes=50), NOON + timedelta(minutes=15))
    assert stats.total.run is not None
    assert stats.total.run.count == 4
    assert stats.total.lateness is None


async def test_the_same_is_told_of_the_queue_and_of_everything(scheduler: Scheduler) -> None:
    await count(scheduler, "succeeded", "failed")
    for stats in (
        await scheduler.stats.queues("mail", since="1h"),
        await scheduler.stats.queues(since=NOON - timedelta(hours=1)),
        await scheduler.stats.tasks(since=timedelta(hours=1)),
        await scheduler.stats.tasks(since=3600),
    ):
        assert stats.total.outcomes == {"failed": 1, "succeeded": 1}
    assert (stats.kind, stats.name) == ("all", None)


async def test_a_schedule_tells_how_late_it_was_by_the_hour(scheduler: Scheduler) -> None:
    await count(scheduler, "succeeded", "skipped", schedule="often")
    stats = await scheduler.stats.schedules("often", since="3h")
    assert stats.step == 3600
    assert stats.total.outcomes == {"skipped": 1, "succeeded": 1}
    assert stats.total.lateness is not None
    assert stats.total.lateness.mean == 0.5
    assert stats.total.lateness.p99 == pytest.approx(0.5, rel=1 / 16)


async def test_merged_and_written_counts_are_told_together(scheduler: Scheduler, clock: FakeClock) -> None:
    await count(scheduler, "succeeded")
    assert not await fold(scheduler.store)
    await count(scheduler, "succeeded")
    for step in ("1m", "1h", "1d"):
        stats = await scheduler.stats.tasks("greet", since="2h", step=step)
        assert stats.total.outcomes == {"succeeded": 2}, step
    clock.advance("100d")
    assert (await scheduler.stats.tasks("greet", since="120d")).total.outcomes == {"succeeded": 2}


async def test_what_no_one_counted_is_nothing_and_no_error(scheduler: Scheduler) -> None:
    # As a worker of a release without statistics leaves it.
    stats = await scheduler.stats.tasks("unknown", since="1h", step="1h")
    assert stats.total.outcomes == {}
    assert stats.total.wait is stats.total.run is stats.total.lateness is None
    assert [point.outcomes for point in stats.points] == [{}, {}]


async def test_what_is_written_after_a_clock_was_set_back_is_told_where_it_says(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    await count(scheduler, "succeeded")
    clock.set(NOON - timedelta(hours=2))
    await count(scheduler, "failed")
    clock.set(NOON + timedelta(minutes=1))
    stats = await scheduler.stats.tasks("greet", since="3h", step="1h")
    assert {point.at.hour: point.outcomes for point in stats.points if point.outcomes} == {
        10: {"failed": 1},
        12: {"succeeded": 1},
    }
    assert stats.total.wait is not None
    assert stats.total.wait.mean >= 0


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"since": NOON + timedelta(days=1)}, InvalidTime),
        ({"since": NOON.replace(tzinfo=None)}, InvalidTime),
        ({"since": "1h", "until": "2h"}, InvalidTime),
        ({"since": "3d", "step": "5m"}, InvalidOption),
        ({"since": "1h", "step": "10s"}, InvalidOption),
        ({"since": "soon"}, InvalidDuration),
        ({"since": True}, InvalidDuration),
        ({"since": None}, InvalidDuration),
        ({"since": "1h", "step": "often"}, InvalidDuration),
    ],
    ids=str,
)
async def test_what_cannot_be_told_is_refused(
    scheduler: Scheduler, asked: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await scheduler.stats.tasks("greet", **asked)  # type: ignore[arg-type]


async def test_a_deployment_is_marked_once_when_its_first_worker_comes(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    await deploy(scheduler, "1")
    clock.advance("10m")
    await deploy(scheduler, "1")
    await deploy(scheduler, "2 ☃")
    stats = await scheduler.stats.tasks("greet", since="1h")
    assert [(mark.at, mark.verb, mark.kind, mark.detail) for mark in stats.marks] == [
        (NOON, "deploy", "deployment", {"release": "1"}),
        (NOON + timedelta(minutes=10), "deploy", "deployment", {"release": "2 ☃"}),
    ]


async def test_pauses_and_changes_are_marks_of_what_they_are_about(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    await scheduler.queues.pause("mail", reason="the relay is down", by="ann")
    await scheduler.schedules.put("nightly", cron("0 3 * * *"), "greet", by="bob")
    clock.advance("1m")
    await scheduler.schedules.pause("nightly", by="bob")
    clock.advance("1m")

    def told(stats: object) -> list[tuple[str, str, str]]:
        return [(mark.verb, mark.name, mark.who) for mark in stats.marks]  # type: ignore[attr-defined]

    assert told(await scheduler.stats.queues("mail", since="1h")) == [("pause", "mail", "ann")]
    put, paused = ("put", "nightly", "bob"), ("pause", "nightly", "bob")
    assert told(await scheduler.stats.schedules("nightly", since="1h")) == [put, paused]
    assert {*told(await scheduler.stats.tasks(since="1h"))} == {("pause", "mail", "ann"), put, paused}
    assert told(await scheduler.stats.tasks("greet", since="1h")) == []
    clock.advance("1d")
    assert told(await scheduler.stats.queues("mail", since="1h")) == []


async def test_failures_are_new_since_a_release_if_there_were_none_of_their_kind(
    scheduler: Scheduler, clock: FakeClock
) -> None:
    def other() -> None:
        raise KeyError

    def again() -> None:
        raise ValueError

    for function in (other, again):
        scheduler.task(name=function.__name__, retries=0)(function)
    await deploy(scheduler, "1")
    await scheduler.enqueue_by_name("again")
    await drain(scheduler)
    clock.advance("1h")
    await deploy(scheduler, "2")
    for task in ("other", "again"):
        await scheduler.enqueue_by_name(task)
    await drain(scheduler)
    assert {group.task for group in await scheduler.stats.new_failures("1")} == {"again", "other"}
    assert [group.task for group in await scheduler.stats.new_failures("2")] == ["other"]
    with pytest.raises(InvalidOption, match="no worker of a release '3' has been seen"):
        await scheduler.stats.new_failures("3")


def test_blocking_callers_have_the_same_verbs(sqlite_url: str) -> None:
    scheduler = Scheduler(sqlite_url)
    stats = scheduler.sync.stats
    assert stats.tasks("greet").total.outcomes == stats.queues("mail").total.outcomes == {}
    assert stats.schedules("nightly").kind == "schedule"
    scheduler.sync.close()


def test_a_release_is_named_by_a_variable_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUETIME_RELEASE", "2030.1")
    assert (Scheduler().release, Scheduler(release="2").release) == ("2030.1", "2")
