"""`duetime schedules pause`, `resume`, `delete`, `trigger` and `skip`."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime

import pytest

from duetime import Scheduler
from duetime.cli import output as confirming
from duetime.model.schedule import actions
from duetime.scheduler.schedule_changes import change_existing
from tests.acceptance.kit import duetime, from_json
from tests.acceptance.schedules.kit import names, put, shown


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
            await change_existing(
                scheduler.store,
                "nightly",
                lambda before, now: actions.park(replace(before, owner="code"), now=now),
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


@pytest.mark.parametrize(("typed", "left"), [("2", []), ("a", ["a", "b"])])
def test_on_a_terminal_the_number_of_several_is_asked_for(
    typed: str, left: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put("a")
    put("b")
    monkeypatch.setattr(confirming, "is_interactive", lambda: True)
    duetime("schedules", "delete", "a", "b", stdin=f"{typed}\n")
    assert names() == left
