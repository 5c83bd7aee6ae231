"""`duetime explain` and `duetime top`."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from uuid import UUID

import pytest

from duetime import Scheduler, cron
from duetime.testing.conformance.kit import hire, put
from tests.acceptance.kit import URL, duetime, from_json, until, worker


def test_a_job_is_explained_by_its_id(folder: Path) -> None:
    job_id = from_json("enqueue", "shop:scheduler", "shop.greet", "name=x", "--delay", "1h", "--json")["id"]
    shown = duetime("explain", job_id, *URL)
    assert shown.exit_code == 0
    assert "now                  It is not due until" in shown.stdout
    told = from_json("explain", job_id, *URL, "--json")
    assert [line["at"] is None for line in told["lines"]] == [False, True, True]


@pytest.mark.parametrize("subject", ["nothing", "0198", "0198c5a0-7d3e-7c42-9a57-6a1f6d4f2b10"])
def test_what_is_nowhere_says_where_it_was_looked_for(folder: Path, subject: str) -> None:
    duetime("migrate", *URL)
    result = duetime("explain", subject, *URL)
    assert result.exit_code == 3
    assert (
        f"no job or worker whose id is or begins with '{subject}', and no schedule of this name"
        in result.stderr
    )
    assert "workers list" in result.stderr


def test_a_schedule_that_may_be_meant_is_offered(folder: Path) -> None:
    declare()
    assert "no schedule of this name; did you mean nightly?" in duetime("explain", "nightli", *URL).stderr


def test_a_job_is_explained_by_the_beginning_of_its_id_with_or_without_dashes(folder: Path) -> None:
    job_id = from_json("enqueue", "shop:scheduler", "shop.slow", "--delay", "1h")["id"]
    for given in (job_id[:8], str(UUID(job_id)), str(UUID(job_id)).upper()[:15]):
        assert from_json("explain", given, *URL)["job_id"] == job_id


def test_a_worker_is_explained_by_its_id_or_its_beginning(folder: Path) -> None:
    with worker() as process:
        found = re.search(r"worker (\w+) started", until(process, "started: pid"))
        assert found is not None
        duetime("workers", "pause", found[1], "--reason", "reindexing", *URL)
        for given in (found[1], found[1][:12], str(UUID(found[1]))):
            told = duetime("explain", given, *URL)
            assert told.exit_code == 0
            assert f"Worker {found[1]} (pid {process.pid} on " in told.stdout
            assert "It was told to pause (reindexing): paused; 0 jobs still running." in told.stdout
            assert "now                  It is paused since" in told.stdout
        assert from_json("explain", found[1], *URL)["worker_id"] == found[1]


def test_what_may_be_several_things_lists_them(folder: Path) -> None:
    job_id, worker_id = "c" * 32, "c" * 31 + "d"

    async def fill() -> None:
        async with Scheduler("sqlite:///jobs.db") as scheduler:
            await put(scheduler.store, id=job_id)
            await hire(scheduler.store, worker_id)

    asyncio.run(fill())
    result = duetime("explain", "cc", *URL)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-3:] == [
        "Error: 'cc' may be any of these; write more of it:",
        f"  {job_id}  job of greet, pending",
        f"  {worker_id}  worker, pid 1 on host, alive",
    ]


def test_a_schedule_whose_name_begins_an_id_comes_before_the_job(folder: Path) -> None:
    async def fill() -> None:
        async with Scheduler("sqlite:///jobs.db") as scheduler:
            task = scheduler.task(name="report")(declare)
            await put(scheduler.store, id="cafe" * 8)
            await scheduler.schedules.put("cafe", cron("0 3 * * *"), task)

    asyncio.run(fill())
    assert from_json("explain", "cafe", *URL)["schedule"] == "cafe"
    assert from_json("explain", "cafec", *URL)["job_id"] == "cafe" * 8


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
