"""`duetime audit`, and `--by` of the commands that change something."""

from __future__ import annotations

import pytest

from tests.acceptance.kit import URL, duetime, from_json

pytestmark = pytest.mark.usefixtures("folder")


def enqueue() -> str:
    return duetime("enqueue", "shop:scheduler", "shop.slow", "--delay", "1h").stdout.strip()


def test_who_changed_what_is_listed_newest_first() -> None:
    job = enqueue()
    duetime("jobs", "snooze", job, "--delay", "1h", "--by", "ann", *URL)
    duetime("jobs", "cancel", job, "--reason", "sold out", "--by", "bob", *URL)
    duetime("jobs", "rerun", job, "--by", "ann", *URL)
    duetime("queues", "pause", "mail", "--by", "carol", *URL)
    listed = [(one["who"], one["verb"], one["kind"]) for one in from_json("audit", *URL)]
    assert sorted(listed) == [
        ("ann", "rerun", "job"),
        ("ann", "snooze", "job"),
        ("bob", "cancel", "job"),
        ("carol", "pause", "queue"),
    ]
    table = duetime("audit", "--job", job[:20], *URL).stdout
    assert table.splitlines()[0].split() == ["WHEN", "WHO", "VERB", "WHAT", "DETAIL"]
    assert "reason: sold out" in table
    assert "delay: 1 hour" in table
    assert "carol" not in table
    assert [one["who"] for one in from_json("audit", "--queue", "mail", *URL)] == ["carol"]


def test_a_page_says_where_the_next_one_begins() -> None:
    enqueue()
    for queue in ("a", "b", "c"):
        duetime("queues", "pause", queue, *URL)
    page = duetime("audit", "--limit", "2", *URL).stdout.splitlines()
    assert len(page) == 4
    cursor = page[-1].removeprefix("more: --cursor ")
    assert len(from_json("audit", "--limit", "2", "--cursor", cursor, *URL)) == 1


def test_every_command_that_changes_jobs_takes_who_asks() -> None:
    for command in (["delete", "--yes"], ["edit", "--priority", "1"], ["release"], ["cancel"]):
        result = duetime("jobs", command[0], enqueue(), *command[1:], "--by", "ann", *URL)
        assert result.exit_code == 0, result.output
    verbs = [one["verb"] for one in from_json("audit", *URL) if one["who"] == "ann"]
    assert sorted(verbs) == ["cancel", "delete", "edit"]


def test_where_nothing_was_done_it_says_so() -> None:
    duetime("migrate", *URL)
    assert duetime("audit", *URL).stdout == "nothing was done\n"
    assert duetime("audit", "--queue", "a", "--job", "b", *URL).exit_code == 2
    assert duetime("audit", "--by", "ann", *URL).exit_code == 2
