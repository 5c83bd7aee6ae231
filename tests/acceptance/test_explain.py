"""`duetime explain` and `duetime top`."""

from __future__ import annotations

import asyncio
from pathlib import Path

from duetime import Scheduler, cron
from tests.acceptance.kit import URL, duetime, from_json


def test_a_job_is_explained_by_its_id(folder: Path) -> None:
    job_id = from_json("enqueue", "shop:scheduler", "shop.greet", "name=x", "--delay", "1h", "--json")["id"]
    shown = duetime("explain", job_id, *URL)
    assert shown.exit_code == 0
    assert "now                  It is not due until" in shown.stdout
    told = from_json("explain", job_id, *URL, "--json")
    assert [line["at"] is None for line in told["lines"]] == [False, True, True]


def test_an_unknown_job_cannot_be_explained(folder: Path) -> None:
    duetime("migrate", *URL)
    assert duetime("explain", "nothing", *URL).exit_code == 3


def declare() -> None:
    """A schedule that nobody fires."""
    scheduler = Scheduler("sqlite:///jobs.db")

    @scheduler.schedule(cron("0 3 * * *", tz="Europe/Berlin"), name="nightly")
    @scheduler.task(name="report")
    async def report() -> None: ...

    async def put() -> None:
        async with scheduler:
            await scheduler.put_declared()

    asyncio.run(put())


def test_a_schedule_is_explained_by_its_name(folder: Path) -> None:
    declare()
    shown = duetime("explain", "nightly", *URL)
    assert shown.exit_code == 0
    assert "Schedule nightly was created: task report in queue default" in shown.stdout
    assert "No one fires schedules: no worker is alive." in shown.stdout


def test_a_time_without_a_zone_is_one_in_the_zone_of_the_schedule(folder: Path) -> None:
    declare()
    shown = duetime("explain", "nightly", *URL, "--at", "2020-07-01 03:00")
    assert "You ask about 2020-07-01 03:00:00 Europe/Berlin (2020-07-01 01:00:00 UTC)." in shown.stdout
    told = from_json("explain", "nightly", *URL, "--at", "2020-07-01T01:00:00+00:00")
    assert told["tz"] == "Europe/Berlin"
    assert told["lines"][0]["text"] in shown.stdout


def test_a_day_without_a_time_is_refused_and_midnight_is_not(folder: Path) -> None:
    declare()
    shown = duetime("explain", "nightly", *URL, "--at", "2020-07-01")
    assert (shown.exit_code, "say the time, too, such as '2020-07-01 03:00'" in shown.stderr) == (2, True)
    assert duetime("explain", "nightly", *URL, "--at", "2020-07-01 00:00").exit_code == 0


def test_a_time_that_is_none_is_refused_with_an_example(folder: Path) -> None:
    shown = duetime("explain", "nightly", *URL, "--at", "sunday")
    assert shown.exit_code == 2
    assert "write '2030-01-31 03:00'" in shown.stderr


def test_doctor_tells_that_nobody_fires_the_schedules(folder: Path) -> None:
    declare()
    shown = duetime("doctor", *URL)
    assert shown.exit_code == 1
    assert "1 active, and no worker fires them. Fix: start duetime scheduler MODULE:SCHEDULER" in shown.stdout


def test_one_look_is_printed_where_there_is_no_terminal(folder: Path) -> None:
    duetime("migrate", *URL)
    shown = duetime("top", *URL)
    assert shown.exit_code == 0
    assert "0 workers, 0 of 0 slots taken" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert from_json("top", *URL, "--json")["running"] == []
