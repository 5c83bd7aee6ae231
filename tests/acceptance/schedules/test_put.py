"""`duetime schedules put`, `edit`, `list` and `show`."""

from __future__ import annotations

import pytest

from tests.acceptance.kit import duetime, from_json
from tests.acceptance.schedules.kit import put, shown


def test_a_schedule_is_put_listed_and_shown() -> None:
    done = put()
    assert done.stdout.startswith("nightly  created: at 03:00 every day, Europe/Riga\nnext: "), done.output
    assert put().stdout.startswith("nightly  unchanged")
    assert put("nightly", "shop.greet", "name=ann", "--every", "1h").stdout.startswith("nightly  changed")
    put()
    table = duetime("schedules", "list").stdout.splitlines()
    assert table[0].split() == ["NAME", "STATE", "NEXT", "LAST", "OK", "FAILED", "TASK", "WHEN"]
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


def test_a_list_can_be_narrowed() -> None:
    put("a")
    put("b", "shop.slow", "--every", "15m", "--tag", "money")
    duetime("schedules", "pause", "a")
    for option, value, found in (("task", "shop.slow", "b"), ("tag", "money", "b"), ("state", "paused", "a")):
        assert [one["name"] for one in from_json("schedules", "list", f"--{option}", value)] == [found]
