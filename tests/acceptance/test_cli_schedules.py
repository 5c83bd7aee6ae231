"""`duetime schedules`."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from duetime import Scheduler
from duetime.cli import confirming
from duetime.model import parking
from duetime.scheduler.altering import alter_known
from tests.acceptance.kit import duetime, from_json, program, until, worker

pytestmark = pytest.mark.usefixtures("shop")


@pytest.fixture
def shop(folder: Path, store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The application, on each kind of store."""
    source = (folder / "shop.py").read_text()
    (folder / "shop.py").write_text(source.replace('Scheduler("sqlite:///jobs.db")', "Scheduler()"))
    monkeypatch.setenv("DUETIME_URL", store_url)
    yield
    assert not (folder / "jobs.db").exists()


def put(name: str = "nightly", *arguments: str) -> Result:
    given = arguments or ("shop.greet", "name=ann", "--cron", "0 3 * * *", "--tz", "Europe/Riga")
    return duetime("schedules", "put", "shop:scheduler", name, *given)


def names() -> list[str]:
    return [schedule["name"] for schedule in from_json("schedules", "list")]


def shown(name: str = "nightly") -> Any:
    return from_json("schedules", "show", name)


def test_the_load_to_come_is_shown_as_a_map_and_as_json() -> None:
    for name in ("nightly", "backup"):
        put(name)
    text = duetime("schedules", "forecast", "--days", "2", "--tz", "Europe/Riga").stdout
    assert text.startswith("4 jobs of 2 schedules from ")
    assert "  2 times, first " in text
    assert " 03:00:00: backup, nightly" in text
    values = from_json("schedules", "forecast", "--days", "2", "--tz", "Europe/Riga")
    assert [minute["jobs"] for minute in values["busiest"]] == [2, 2]
    assert values["advice"] in text
    assert sum(hour["jobs"] for hour in values["hours"]) == values["jobs"] == 4


def test_a_forecast_is_refused_for_no_days_and_for_no_zone() -> None:
    put()
    assert duetime("schedules", "forecast", "--days", "0").exit_code == 2
    assert "did you mean 'Europe/Riga'" in duetime("schedules", "forecast", "--tz", "Europe/Rigga").stderr


def test_a_schedule_is_put_listed_and_shown() -> None:
    done = put()
    assert done.stdout.startswith("nightly  created: at 03:00 every day, Europe/Riga\nnext: "), done.output
    assert put().stdout.startswith("nightly  unchanged")
    assert put("nightly", "shop.greet", "name=ann", "--every", "1h").stdout.startswith("nightly  changed")
    put()
    table = duetime("schedules", "list").stdout.splitlines()
    assert table[0].split() == ["NAME", "STATE", "NEXT", "TASK", "WHEN"]
    assert table[1].startswith("nightly  active")
    assert " 03:00:00+0" in table[1]
    assert "(in " in table[1]
    text = duetime("schedules", "show", "nightly").stdout
    assert 'arguments        {"name":"ann"}' in text
    assert "when             at 03:00 every day, Europe/Riga" in text
    assert "misfire          latest, at most 1 hour late" in text
    assert len([line for line in text.split("\nNEXT")[1].splitlines() if " 03:00:00+0" in line]) == 5
    assert [one["at"] for one in shown()["upcoming"]] == sorted(one["at"] for one in shown()["upcoming"])


def test_policies_are_options() -> None:
    done = put(
        "rates", "shop.slow", "--every", "15m", "--overlap", "queue_all", "--overlap-limit", "3",
        "--misfire", "all", "--misfire-window", "1h", "--misfire-limit", "7", "--pause-after", "2", "--queue", "mail",
        "--priority", "1", "--retries", "4", "--timeout", "90s", "--tag", "money", "--tag", "fast", "--by", "ann",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    rates = shown("rates")
    expected = {
        "overlap": "queue_all", "overlap_limit": 3, "misfire": "all", "misfire_window": 3600.0, "misfire_limit": 7,
        "pause_after": 2, "queue": "mail", "priority": 1, "retries": 4, "timeout": 90.0, "tags": ["money", "fast"],
    }  # fmt: skip
    assert {key: rates[key] for key in expected} == expected
    assert "overlap          queue_all, at most 3 waiting" in duetime("schedules", "show", "rates").stdout


def test_an_edit_changes_what_is_given_and_nothing_else() -> None:
    put(
        "rates",
        "shop.greet",
        "name=ann",
        "--every",
        "15m",
        "--queue",
        "mail",
        "--retries",
        "4",
        "--tag",
        "money",
    )
    done = duetime(
        "schedules", "edit", "rates", "--cron", "0 4 * * *", "--overlap", "queue_one", "--by", "ann"
    )
    assert done.stdout.startswith("rates  changed: at 04:00 every day, UTC\nnext: "), done.output
    kept = {"queue": "mail", "retries": 4, "tags": ["money"], "arguments": {"name": "ann"}}
    rates = shown("rates")
    assert {key: rates[key] for key in kept} == kept
    assert rates["overlap"] == "queue_one"
    assert from_json("schedules", "edit", "rates", "--queue", "mail")["answer"] == "unchanged"
    assert duetime("schedules", "edit", "rates", "name=bob", "--app", "shop:scheduler").exit_code == 0
    assert shown("rates")["arguments"] == {"name": "bob"}


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("rates",), 2, "say what to change, such as --queue slow"),
        (("rates", "--tz", "Europe/Riga"), 2, "this has none"),
        (("rates", "name=bob"), 2, "say --app MODULE:OBJECT"),
        (("rates", "names=bob", "--app", "shop:scheduler"), 2, "cannot be called"),
        (("nobody", "--queue", "mail"), 3, "there is no schedule 'nobody'"),
    ],
    ids=str,
)
def test_an_edit_of_nothing_or_with_nonsense_is_refused(
    arguments: tuple[str, ...], code: int, text: str
) -> None:
    put("rates", "shop.greet", "name=ann", "--every", "15m")
    before = shown("rates")["updated_at"]
    refused = duetime("schedules", "edit", *arguments)
    assert (refused.exit_code, text in refused.stderr) == (code, True), refused.output
    assert shown("rates")["updated_at"] == before


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--cron", "0 25 * * *"), "     ^^"),
        (("--cron", "0 3 * * *", "--tz", "Europe/Rigga"), "Europe/Riga"),
        (("--every", "0s"), "interval"),
        (("--every", "15m", "--cron", "0 3 * * *"), "this has cron and every"),
        ((), "this has none"),
        (("--every", "15m", "--priority", "12"), "priority must be"),
        (("--every", "15m", "--times", "0"), "'--times': 0 is not in the range x>=1"),
        (("--every", "15m", "--overlap-limit", "3"), "overlap_limit"),
        (("--every", "15m", "--misfire-window", "1ms"), "must be at least 1 second, not 1 millisecond"),
        (("--every", "15m", "names=bob"), "names"),
    ],
    ids=str,
)
def test_what_is_wrong_is_shown_and_nothing_is_stored(arguments: tuple[str, ...], text: str) -> None:
    duetime("migrate")
    refused = put("nightly", "shop.greet", "name=ann", *arguments)
    assert refused.exit_code == 2, refused.output
    assert text in refused.stderr
    assert duetime("schedules", "list").stdout == "no schedules\n"


def test_an_unknown_task_or_schedule_ends_with_3() -> None:
    duetime("migrate")
    unknown = put("nightly", "shop.greed", "--every", "15m")
    assert (unknown.exit_code, "did you mean shop.greet?" in unknown.stderr) == (3, True)
    assert duetime("schedules", "show", "nobody").exit_code == 3


def test_schedules_are_paused_and_resumed_by_name_or_from_input() -> None:
    put("a")
    put("b")
    done = duetime(
        "schedules",
        "pause",
        "a",
        "-",
        "--reason",
        "moving\x07house",
        "--until",
        "2h",
        "--by",
        "ann",
        stdin="b x\n",
    )
    assert done.stdout == "a  paused\nb  paused\n"
    schedule = shown("a")
    assert (schedule["state"], schedule["paused_by"]) == ("paused", "ann")
    text = duetime("schedules", "show", "a").stdout
    assert "by ann: moving\\x07house; until " in text
    assert "\x07" not in duetime("schedules", "list").stdout
    assert from_json("schedules", "resume", "a", "nobody", "b") == {
        "a": "resumed",
        "nobody": "unknown",
        "b": "resumed",
    }
    assert duetime("schedules", "resume", "nobody").exit_code == 3
    assert [schedule["state"] for schedule in from_json("schedules", "list")] == ["active", "active"]


def test_a_resume_tells_what_was_not_paused() -> None:
    put()
    assert duetime("schedules", "resume", "nightly").stdout == "nightly  was not paused\n"
    assert from_json("schedules", "resume", "nightly") == {"nightly": "unchanged"}
    duetime("schedules", "pause", "nightly")
    assert duetime("schedules", "resume", "nightly").stdout == "nightly  resumed\n"


def test_a_resume_tells_that_what_is_parked_stays_so(store_url: str) -> None:
    put()

    async def park() -> None:
        async with Scheduler(store_url) as scheduler:
            await alter_known(
                scheduler.store,
                "nightly",
                lambda before, now: parking.park(replace(before, owner="code"), now=now),
            )

    asyncio.run(park())
    assert duetime("schedules", "resume", "nightly").stdout.startswith("nightly  is parked, since no code")


@pytest.mark.parametrize("until", ["2h", "90", "2030-01-31T09:00:00Z", "2030-01-31 03:00:00+02:00"])
def test_the_end_of_a_pause_is_a_length_or_a_moment_as_lists_print_it(until: str) -> None:
    put()
    assert duetime("schedules", "pause", "nightly", "--until", until).exit_code == 0
    assert shown()["paused_until"] is not None


@pytest.mark.parametrize(
    ("until", "text"),
    [
        ("soon", "is neither a duration nor a point in time; write 2h, or"),
        ("2030-01-31 03:00", "has no time zone"),
    ],
)
def test_an_end_of_a_pause_that_is_neither_is_refused(until: str, text: str) -> None:
    put()
    refused = duetime("schedules", "pause", "nightly", "--until", until)
    assert (refused.exit_code, text in refused.stderr) == (2, True), refused.output


def test_the_history_of_what_never_was_ends_with_3() -> None:
    put()
    unknown = duetime("schedules", "history", "nightlie")
    assert (unknown.exit_code, "did you mean nightly?" in unknown.stderr) == (3, True)


def test_a_list_can_be_narrowed() -> None:
    put("a")
    put("b", "shop.slow", "--every", "15m", "--tag", "money")
    duetime("schedules", "pause", "a")
    for option, value, found in (("task", "shop.slow", "b"), ("tag", "money", "b"), ("state", "paused", "a")):
        assert [one["name"] for one in from_json("schedules", "list", f"--{option}", value)] == [found]


def test_a_schedule_is_deleted_when_somebody_says_so() -> None:
    put("a")
    put("b")
    refused = duetime("schedules", "delete", "a")
    assert (refused.exit_code, "say --yes" in refused.stderr) == (2, True)
    assert duetime("schedules", "delete", "a", "b", "--dry-run").stdout == (
        "a  would be deleted\nb  would be deleted\n"
    )
    assert names() == ["a", "b"]
    done = duetime("schedules", "delete", "-", "--yes", stdin="a\nnobody\n")
    assert (done.exit_code, done.stdout) == (3, "a  deleted\nnobody  there is no such schedule\n")
    assert names() == ["b"]


def test_a_job_is_made_now_with_the_arguments_of_the_schedule_or_others() -> None:
    put()
    before = shown()["next_at"]
    first = duetime("schedules", "trigger", "nightly", "--by", "ann").stdout.strip()
    assert from_json("jobs", "show", first)["arguments"] == {"name": "ann"}
    other = ("schedules", "trigger", "nightly", "name=bob", "times=2")
    refused = duetime(*other)
    assert (refused.exit_code, "--app MODULE:OBJECT" in refused.stderr) == (2, True)
    second = from_json(*other, "--app", "shop:scheduler")["id"]
    job = from_json("jobs", "show", second)
    assert (job["arguments"], job["schedule"], job["occurrence"]) == (
        {"name": "bob", "times": 2},
        "nightly",
        None,
    )
    assert duetime(*other, "tomes=3", "--app", "shop:scheduler").exit_code == 2
    assert shown()["next_at"] == before
    assert duetime("schedules", "show", "nightly").stdout.count("by hand") == 2


def test_the_next_occurrence_is_left_out_and_the_one_after_is_not() -> None:
    put()
    first, second, *_ = [one["at"] for one in from_json("schedules", "preview", "nightly", "--count", "3")]
    skipped = from_json("schedules", "skip", "nightly", "--by", "ann")["skipped"]
    assert datetime.fromisoformat(skipped) == datetime.fromisoformat(first)
    assert skipped.endswith(("+02:00", "+03:00"))
    assert datetime.fromisoformat(shown()["next_at"]) == datetime.fromisoformat(second)
    assert "skipped by ann" in duetime("schedules", "show", "nightly").stdout
    duetime("schedules", "pause", "nightly")
    refused = duetime("schedules", "skip", "nightly")
    assert (refused.exit_code, "is paused" in refused.stderr) == (1, True)


def test_times_to_come_are_shown_with_what_the_clock_does_to_them() -> None:
    put("early", "shop.slow", "--cron", "30 2 * * *", "--tz", "Europe/Berlin")
    table = duetime(
        "schedules", "preview", "early", "--after", "2030-03-30T12:00:00Z", "--count", "1"
    ).stdout.splitlines()
    assert table[0].split() == ["NEXT", "NOTE"]
    assert "2030-03-31 03:00:00+02:00" in table[1]
    assert "02:30 does not exist on this day" in table[1]


def test_what_was_missed_is_made_up_for_once_and_can_be_counted_first() -> None:
    put("hourly", "shop.slow", "--cron", "0 * * * *")
    stretch = ("--start", "2025-01-01T00:00:00Z", "--end", "2025-01-01T23:59:00Z")
    fill = ("schedules", "backfill", "hourly", *stretch)
    assert duetime(*fill, "--dry-run").stdout == (
        "hourly  24 of 24 occurrence(s) would be enqueued, 0 had a job\n"
    )
    assert from_json("jobs", "list", "--schedule", "hourly") == []
    assert from_json(*fill)["enqueued"] == 24
    assert duetime(*fill).stdout == "hourly  0 of 24 occurrence(s) enqueued, 24 had a job\n"
    assert len(from_json("jobs", "list", "--schedule", "hourly")) == 24


def test_the_history_tells_who_did_what() -> None:
    put("nightly", "shop.slow", "--cron", "0 3 * * *", "--by", "ann")
    put("nightly", "shop.slow", "--cron", "0 4 * * *", "--queue", "mail", "--timeout", "90s", "--by", "bob")
    moment = "2090-01-31T09:00:00Z"
    duetime("schedules", "pause", "nightly", "--reason", "moving", "--until", moment, "--by", "eve")
    changes = from_json("schedules", "history", "nightly")
    assert [(change["who"], change["verb"]) for change in changes] == [
        ("eve", "pause"),
        ("bob", "put"),
        ("ann", "put"),
    ]
    text = duetime("schedules", "history", "nightly", "--limit", "2").stdout
    assert "trigger: at 03:00 every day, UTC → at 04:00 every day, UTC" in text
    assert "queue: default → mail" in text
    assert "timeout: none → 1 minute 30 seconds" in text
    assert "reason: moving, until: 2090-01-31 09:00:00+00:00" in text
    assert "ann" not in text
    assert changes[0]["detail"] == {"reason": "moving", "until": "2090-01-31T09:00:00Z"}
    assert changes[1]["detail"]["timeout"] == [None, 90.0]
    assert changes[1]["detail"]["trigger"] == ["at 03:00 every day, UTC", "at 04:00 every day, UTC"]


@pytest.mark.parametrize(("typed", "left"), [("2", []), ("a", ["a", "b"])])
def test_on_a_terminal_the_number_of_several_is_asked_for(
    typed: str, left: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put("a")
    put("b")
    monkeypatch.setattr(confirming, "somebody_there", lambda: True)
    duetime("schedules", "delete", "a", "b", stdin=f"{typed}\n")
    assert names() == left


def test_schedules_move_through_a_file(folder: Path) -> None:
    put("a")
    put("b", "shop.slow", "--every", "15m", "--tag", "money")
    duetime("schedules", "pause", "b", "--reason", "moving house")
    done = duetime("schedules", "export", "--output", "all.yaml")
    assert done.stdout == "2 schedule(s) written to all.yaml\n"
    before = (folder / "all.yaml").read_text()
    duetime("schedules", "delete", "a", "b", "--yes")
    load = ("schedules", "import", "shop:scheduler", "all.yaml")
    assert duetime(*load, "--dry-run").stdout == "a  would be created\nb  would be created\n"
    assert names() == []
    assert duetime(*load, "--by", "ann").stdout == "a  created\nb  created\n"
    assert from_json(*load) == {
        "dry_run": False,
        "schedules": {"a": "unchanged", "b": "unchanged"},
        "notes": [],
    }
    assert duetime("schedules", "export", "--format", "yaml").stdout == before


def test_a_file_with_problems_is_refused_as_a_whole(folder: Path) -> None:
    duetime("migrate")
    (folder / "crontab").write_text("0 3 * * * shop.slow\n0 25 * * * shop.greet name=ann\n@daily shop.slov\n")
    refused = duetime("schedules", "import", "shop:scheduler", "crontab")
    assert refused.exit_code == 2
    assert "2 problems; nothing was stored" in refused.stderr
    assert "crontab:2: bad hour '25'" in refused.stderr
    assert "     ^^" in refused.stderr
    assert "crontab:3: there is no task 'shop.slov' here; did you mean shop.slow" in refused.stderr
    assert names() == []


def test_without_the_code_a_file_is_taken_unchecked() -> None:
    duetime("migrate")
    document = json.dumps({"schedules": [{"name": "far", "task": "away.task", "every": "1h"}]})
    for arguments in (("-",), ("shop:scheduler", "-", "--no-check")):
        assert duetime("schedules", "import", *arguments, stdin=document).exit_code == 2
    assert duetime("schedules", "import", "-", "--no-check", stdin=document).stdout == "far  created\n"
    missing = duetime("schedules", "import", "--no-check", "nowhere.json")
    assert (missing.exit_code, "nowhere.json cannot be read" in missing.stderr) == (2, True)


def test_a_crontab_tells_what_it_cannot_say() -> None:
    put("a")
    put("b", "shop.slow", "--every", "15m")
    export = duetime("schedules", "export", "--format", "crontab")
    assert 'CRON_TZ=Europe/Riga\n0 3 * * * shop.greet {"name": "ann"}\n' in export.stdout
    assert "b has no cron expression" in export.stderr
    loaded = duetime("schedules", "import", "shop:scheduler", "-", "--format", "crontab", stdin=export.stdout)
    assert loaded.stdout == "a  unchanged\n"
    assert os.environ["DUETIME_URL"]


def test_one_process_fires_and_another_runs() -> None:
    put("often", "shop.greet", "name=ann", "--every", "1s")
    with program("scheduler") as firing:
        assert "fires schedules and runs no jobs" in until(firing, "started: pid")
        assert "firing schedules and running no jobs" in until(firing, "stop with")
        assert "none, runs no jobs  0/0" in duetime("workers", "list").stdout
        assert "no living worker runs jobs" in duetime("schedules", "list").stderr
        with worker("--no-schedules") as working:
            assert "running jobs and leaving schedules to others" in until(working, "stop with")
            until(working, "hello ann")
            found = from_json("schedules", "show", "often")
            assert found["task_known"] is True
            assert len(from_json("workers", "list")) == 2
            until(working, "hello ann")
            until(working, "hello ann")
            made = [job for job in from_json("jobs", "list", "--schedule", "often") if job["worker"]]
            assert len({job["worker"] for job in made}) == 1
        firing.terminate()
        assert firing.wait(timeout=30) == 0


def test_a_worker_that_leaves_schedules_alone_fires_none() -> None:
    put("often", "shop.greet", "name=ann", "--every", "1s")
    with worker("--no-schedules") as working:
        until(working, "stop with")
        assert "no living worker fires schedules" in duetime("schedules", "list").stderr
        assert "no living worker fires schedules" in duetime("schedules", "show", "often").stdout
