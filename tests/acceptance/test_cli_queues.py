"""`duetime queues`."""

from __future__ import annotations

import pytest

from duetime.cli import output as confirming
from tests.acceptance.kit import URL, duetime, from_json

pytestmark = pytest.mark.usefixtures("folder")


def enqueue(*, times: int = 1, queue: str = "mail") -> list[str]:
    command = ("enqueue", "shop:scheduler", "shop.slow", "--queue", queue)
    return [duetime(*command).stdout.strip() for _ in range(times)]


def test_queues_are_listed_paused_and_resumed() -> None:
    enqueue(times=2)
    assert duetime("queues", "pause", "mail", "bulk", "--reason", "the relay is down", *URL).stdout == (
        "mail  paused\nbulk  paused\n"
    )
    table = duetime("queues", "list", *URL).stdout
    assert table.splitlines()[0].split()[:3] == ["QUEUE", "SCHEDULED", "QUEUED"]
    assert "the relay is down" in table
    bulk, mail = from_json("queues", "list", *URL)
    assert (mail["name"], mail["queued"], mail["paused"]) == ("mail", 2, True)
    assert (bulk["name"], bulk["queued"]) == ("bulk", 0)
    assert from_json("queues", "resume", "mail", *URL) == {"mail": "resumed"}
    assert [queue["paused"] for queue in from_json("queues", "list", *URL)] == [True, False]


def test_a_queue_that_nothing_names_is_paused_and_a_line_says_so() -> None:
    enqueue()
    result = duetime("queues", "pause", "mial", "mail", *URL)
    assert (result.exit_code, result.stdout) == (0, "mial  paused\nmail  paused\n")
    assert result.stderr == "mial: no job, schedule or living worker names this queue; did you mean mail?\n"
    assert [queue["name"] for queue in from_json("queues", "list", *URL)] == ["mail", "mial"]


def test_a_queue_of_a_schedule_is_known_before_it_has_jobs() -> None:
    put = ("schedules", "put", "shop:scheduler", "nightly", "shop.slow", "--cron", "0 3 * * *")
    assert duetime(*put, "--queue", "night").exit_code == 0
    assert duetime("queues", "pause", "night", *URL).stderr == ""


def test_a_database_without_queues_says_so() -> None:
    duetime("migrate", *URL)
    assert duetime("queues", "list", *URL).stdout == "no queues\n"


def test_one_bad_name_among_several_pauses_none() -> None:
    duetime("migrate", *URL)
    result = duetime("queues", "pause", "mail", "no queue", *URL)
    assert result.exit_code == 2
    assert "'no queue' is not allowed" in result.stderr
    assert duetime("queues", "list", *URL).stdout == "no queues\n"


def test_a_purge_needs_a_yes_and_can_be_tried_first() -> None:
    ids = enqueue(times=3)
    refused = duetime("queues", "purge", "mail", *URL)
    assert refused.exit_code == 2
    assert "say --yes" in refused.stderr
    assert duetime("queues", "purge", "mail", "--dry-run", *URL).stdout == (
        "mail: 3 jobs would be cancelled\n"
    )
    assert from_json("queues", "purge", "none", "--dry-run", *URL) == {"queue": "none", "would_purge": 0}
    assert from_json("jobs", "show", ids[0], *URL)["state"] == "pending"
    assert from_json("queues", "purge", "mail", "--yes", "--reason", "oops", *URL) == {
        "queue": "mail",
        "purged": 3,
    }
    job = from_json("jobs", "show", ids[0], *URL)
    assert (job["state"], job["reason"]) == ("cancelled", "oops")


@pytest.mark.parametrize(("typed", "code"), [("mail", 0), ("male", 2)])
def test_on_a_terminal_the_name_is_asked_for(typed: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (job_id,) = enqueue()
    monkeypatch.setattr(confirming, "is_interactive", lambda: True)
    result = duetime("queues", "purge", "mail", *URL, stdin=f"{typed}\n")
    assert result.exit_code == code
    assert (from_json("jobs", "show", job_id, *URL)["state"] == "cancelled") == (code == 0)
