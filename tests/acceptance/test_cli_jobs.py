"""`duetime enqueue`, `duetime jobs` and `duetime prune`."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sqlite3
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from duetime import Scheduler
from duetime.cli import output
from duetime.model.time import DAY, SECOND
from duetime.scheduler import jobs as releasing
from duetime.testing.conformance.kit import hire, put, take_one
from tests.acceptance.kit import URL, duetime, from_json, until, worker


@pytest.mark.parametrize(
    ("arguments", "stored"),
    [
        (["shop.greet", "name=Ann"], {"name": "Ann"}),
        (["shop.greet", "name=123", "times=2"], {"name": "123", "times": 2}),
        (["shop.greet", "name=a=b", "day=2030-01-31"], {"name": "a=b", "day": "2030-01-31"}),
        (["shop.greet", "name=Ann", "more=[1,2]"], {"name": "Ann", "more": [1, 2]}),
        (["shop.greet", '{"name": "Ann", "times": 3}'], {"name": "Ann", "times": 3}),
        (["shop.greet", '["Ann", 3]'], {"name": "Ann", "times": 3}),
        (["shop.plain", "value=12"], {"value": 12}),
        (["shop.plain", "value=twelve"], {"value": "twelve"}),
        (["shop.slow"], {}),
    ],
)
def test_enqueue_reads_arguments_by_the_types_of_the_task(
    folder: Path, arguments: list[str], stored: dict[str, object]
) -> None:
    job_id = duetime("enqueue", "shop:scheduler", *arguments).stdout.strip()
    assert from_json("jobs", "show", job_id, *URL)["arguments"] == stored


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["shop.greet", "times=2"], 2, "name"),
        (["shop.greet", "name=Ann", "times=many"], 2, "times"),
        (["shop.greet", "Ann"], 2, "'Ann' is given without a name; write 'name=Ann', or JSON"),
        (["shop.greet", "name=Ann", "3"], 2, "write 'times=3', or JSON"),
        (["shop.plain", "1", "--url", "sqlite:///other.db"], 2, "set $DUETIME_URL for Scheduler()"),
        (["shop.greet", "name=Ann", "name=Bob"], 2, "twice"),
        (["shop.greet", "{name: Ann}"], 2, "not JSON"),
        (["shop.plain", "value=1", "--delay", "soon"], 2, "is not a duration"),
        (["shop.plain", "value=1", "--delay", "-1"], 2, "is not a duration"),
        (["shop.plain", "value=1", "--delay", "nan"], 2, "is not a duration"),
        (["shop.plain", "value=1", "--at", "2030-01-31T09:00"], 2, "has no time zone"),
        (["shop.plain", "value=1", "--at", "tomorrow"], 2, "is not a point in time"),
        (["shop.plain", "value=1", "--at", "2030-01-31T09:00Z", "--delay", "1s"], 2, "not both"),
        (["shop.plain", "value=1", "--priority", "10"], 2, "priority"),
        (["shop.plain", "value=1", "--queue", "two words"], 2, "queue"),
        (["greet", "name=Ann"], 3, "did you mean shop.greet?"),
        (["shop.great", "name=Ann"], 3, "did you mean shop.greet"),
        (["xyz"], 3, "there are: shop.block, shop.fail"),
    ],
)
def test_enqueue_refuses_what_cannot_work_and_stores_nothing(
    folder: Path, arguments: list[str], code: int, said: str
) -> None:
    duetime("migrate", *URL)
    result = duetime("enqueue", "shop:scheduler", *arguments)
    assert result.exit_code == code
    assert said in result.stderr
    assert from_json("jobs", "list", *URL) == []


def test_enqueue_takes_a_delay_a_moment_a_queue_and_a_priority(folder: Path) -> None:
    duetime("enqueue", "shop:scheduler", "shop.slow", "--delay", "1h", "--queue", "mail", "--priority", "0")
    answer = from_json("enqueue", "shop:scheduler", "shop.slow", "--at", "2030-01-31T09:00:00+01:00")

    at, delayed = from_json("jobs", "list", *URL)
    assert at["id"] == answer["id"]
    assert at["due_at"] == "2030-01-31T08:00:00Z"
    assert (delayed["queue"], delayed["priority"]) == ("mail", 0)
    assert "due in 1h" in duetime("jobs", "list", "--queue", "mail", *URL).stdout


def test_jobs_are_listed_by_page_and_filter(folder: Path) -> None:
    ids = [duetime("enqueue", "shop:scheduler", "shop.slow").stdout.strip() for _ in range(3)]
    duetime("jobs", "cancel", ids[0], *URL)

    first = duetime("jobs", "list", "--limit", "2", *URL).stdout
    assert ids[2] in first
    more = re.search(r"^more: --cursor (\S+)$", first, re.MULTILINE)
    assert more is not None

    def listed(*options: str) -> list[str]:
        return [job["id"] for job in from_json("jobs", "list", *options, *URL)]

    assert listed("--cursor", more[1]) == [ids[0]]
    assert duetime("jobs", "list", "--limit", "2", "--json", *URL).stderr == f"more: --cursor {more[1]}\n"
    assert listed("--state", "cancelled") == listed("--registry", "cancelled") == [ids[0]]
    assert listed("--since", "1h") == listed("--since", "2020-01-01T00:00:00Z") == ids[::-1]
    assert listed("--since", "2100-01-01T00:00:00Z") == []
    for name in ("--task", "--schedule", "--key", "--tag"):
        assert duetime("jobs", "list", name, "other", *URL).stdout == "no jobs\n"
    duetime("schedules", "put", "shop:scheduler", "often", "shop.slow", "--every", "1h")
    triggered = duetime("schedules", "trigger", "often", *URL).stdout.strip()
    assert listed("--kind", "scheduled") == [triggered]
    assert listed("--kind", "one_off") == ids[::-1]
    for bad in (
        ("--limit", "0"),
        ("--cursor", ids[0]),
        ("--since", "soon"),
        ("--registry", "lost"),
        ("--kind", "odd"),
    ):
        assert duetime("jobs", "list", *bad, *URL).exit_code == 2


def test_cancel_tells_what_became_of_each_job(folder: Path) -> None:
    job_id = duetime("enqueue", "shop:scheduler", "shop.slow").stdout.strip()
    result = duetime("jobs", "cancel", job_id, "--reason", "not needed", *URL)
    assert (result.exit_code, result.stdout) == (0, f"{job_id}  cancelled\n")
    assert from_json("jobs", "show", job_id, *URL)["reason"] == "not needed"

    assert duetime("jobs", "cancel", job_id, *URL).exit_code == 1
    result = duetime("jobs", "cancel", job_id, "unknown", "--json", *URL)
    assert result.exit_code == 3
    assert json.loads(result.stdout) == {job_id: "finished", "unknown": "unknown"}


def test_jobs_are_named_by_the_beginning_of_their_ids_with_or_without_dashes(folder: Path) -> None:
    job_id = duetime("enqueue", "shop:scheduler", "shop.slow", "--delay", "1h").stdout.strip()
    dashed = str(UUID(job_id))
    for given in (job_id[:6], dashed, dashed.upper(), dashed[:13]):
        assert from_json("jobs", "show", given, *URL)["id"] == job_id
        assert duetime("jobs", "logs", given, *URL).exit_code == 0
        assert duetime("jobs", "snooze", given, "--delay", "1h", *URL).stdout == f"{job_id}  put off\n"
        assert duetime("jobs", "edit", given, "--priority", "0", *URL).stdout == f"{job_id}  changed\n"
        assert duetime("jobs", "release", given, *URL).stdout == f"{job_id}  no worker has it\n"
        assert duetime("jobs", "cancel", given, "--dry-run", *URL).stdout == f"{job_id}  would be cancelled\n"
    assert duetime("jobs", "cancel", dashed[:9], job_id, *URL).stdout == f"{job_id}  cancelled\n"
    assert duetime("jobs", "tail", job_id[:6], *URL).exit_code == 1
    assert from_json("jobs", "rerun", dashed, *URL)[job_id]["answer"] == "enqueued"
    assert duetime("jobs", "delete", dashed, "--yes", *URL).stdout == f"{job_id}  deleted\n"


def test_the_beginning_of_several_ids_is_refused_with_all_of_them_and_nothing_is_done(folder: Path) -> None:
    async def fill() -> None:
        async with Scheduler("sqlite:///jobs.db") as scheduler:
            for n in range(12):
                await put(scheduler.store, id=f"ab{n:030x}")
                await put(scheduler.store, id=f"ac{n:030x}")

    asyncio.run(fill())
    few = duetime("jobs", "cancel", "ab" + "0" * 29, "-", *URL, stdin=f"ac{0:030x}\n")
    assert few.exit_code == 2
    assert f"  ab{9:030x}  job of greet, pending\n  ab{8:030x}  job of greet, pending" in few.stderr
    many = duetime("jobs", "show", "a-b", *URL).stderr.splitlines()
    assert many[-12] == "Error: 'a-b' may be any of these; write more of it:"
    assert many[-11:-1] == [f"  ab{n:030x}  job of greet, pending" for n in range(11, 1, -1)]
    assert many[-1] == "  … and more"
    assert {job["state"] for job in from_json("jobs", "list", *URL)} == {"pending"}
    assert duetime("jobs", "show", f"ab{1:030x}", *URL).exit_code == 0


def test_ids_can_come_from_standard_input_and_a_dry_run_changes_nothing(folder: Path) -> None:
    ids = [duetime("enqueue", "shop:scheduler", "shop.slow").stdout.strip() for _ in range(2)]
    listed = f"{ids[0]}  shop.slow\n\n{ids[1]}\n"
    result = duetime("jobs", "cancel", "-", "--dry-run", *URL, stdin=listed)
    assert (result.exit_code, result.stdout) == (0, "".join(f"{i}  would be cancelled\n" for i in ids))
    assert len(from_json("jobs", "list", "--state", "pending", *URL)) == 2
    result = duetime("jobs", "cancel", "-", *URL, stdin=listed)
    assert (result.exit_code, result.stdout) == (0, "".join(f"{i}  cancelled\n" for i in ids))
    assert duetime("jobs", "cancel", ids[0], "--dry-run", *URL).exit_code == 1

    result = duetime("jobs", "cancel", "-", *URL, stdin="\n")
    assert result.exit_code == 2
    assert "no ids on standard input" in result.stderr


def test_jobs_that_have_ended_can_be_run_again(folder: Path) -> None:
    old = duetime("enqueue", "shop:scheduler", "shop.greet", "name=you").stdout.strip()
    assert duetime("jobs", "rerun", old, *URL).stdout == f"{old}  still waits or runs\n"
    assert duetime("jobs", "rerun", old, *URL).exit_code == 1
    duetime("jobs", "cancel", old, *URL)

    result = duetime("jobs", "rerun", old, "--delay", "1h", "--queue", "slow", *URL)
    assert result.exit_code == 0
    new = result.stdout.split()[-1]
    assert result.stdout == f"{old}  runs again as {new}\n"
    job = from_json("jobs", "show", new, *URL)
    assert (job["parent"], job["arguments"], job["queue"]) == (
        old,
        {"name": "you"},
        "slow",
    )

    result = duetime("jobs", "rerun", "unknown", "--json", *URL)
    assert result.exit_code == 3
    assert json.loads(result.stdout) == {"unknown": {"answer": "unknown", "id": None}}


def test_jobs_can_be_put_off(folder: Path) -> None:
    job_id = duetime("enqueue", "shop:scheduler", "shop.slow", "--at", "2030-01-31T09:00:00Z").stdout.strip()
    assert duetime("jobs", "snooze", job_id, "--delay", "1h", *URL).stdout == f"{job_id}  put off\n"
    assert from_json("jobs", "show", job_id, *URL)["due_at"] == "2030-01-31T10:00:00Z"
    duetime("jobs", "cancel", job_id, *URL)
    result = duetime("jobs", "snooze", job_id, "--delay", "1h", *URL)
    assert (result.exit_code, result.stdout) == (1, f"{job_id}  has ended\n")
    assert duetime("jobs", "snooze", "unknown", "--delay", "1h", *URL).exit_code == 3
    assert duetime("jobs", "snooze", job_id, *URL).exit_code == 2


def test_jobs_can_be_changed(folder: Path) -> None:
    first, second = (
        duetime("enqueue", "shop:scheduler", "shop.slow", "--delay", "1h").stdout.strip() for _ in range(2)
    )
    result = duetime("jobs", "edit", first, second, "--at", "2030-01-31T09:00:00Z", "--queue", "mail", *URL)
    assert (result.exit_code, result.stdout) == (0, f"{first}  changed\n{second}  changed\n")
    job = from_json("jobs", "show", second, *URL)
    assert (job["due_at"], job["queue"], job["priority"]) == ("2030-01-31T09:00:00Z", "mail", 5)
    duetime("jobs", "edit", first, "--delay", "0s", "--priority", "0", *URL)
    job = from_json("jobs", "show", first, *URL)
    assert (job["due_at"] < "2030", job["priority"]) == (True, 0)
    duetime("jobs", "cancel", first, *URL)
    result = duetime("jobs", "edit", first, second, "--delay", "1h", *URL)
    assert (result.exit_code, result.stdout) == (1, f"{first}  has ended\n{second}  changed\n")
    assert duetime("jobs", "edit", "unknown", "--delay", "1h", *URL).exit_code == 3
    for bad in (
        (),
        ("--at", "2030-01-31T09:00:00Z", "--delay", "1h"),
        ("--priority", "10"),
        ("--queue", "a b"),
    ):
        assert duetime("jobs", "edit", second, *bad, *URL).exit_code == 2


def test_jobs_can_be_taken_from_their_workers(folder: Path) -> None:
    job_id = duetime("enqueue", "shop:scheduler", "shop.slow").stdout.strip()
    assert duetime("jobs", "release", job_id, *URL).stdout == f"{job_id}  no worker has it\n"
    with worker() as process:
        until(process, "slow began")
        refused = duetime("jobs", "release", job_id, *URL)
        assert (refused.exit_code, "--force" in refused.stdout) == (1, True)
        foreseen = duetime("jobs", "release", job_id, "--force", "--dry-run", *URL)
        assert (foreseen.exit_code, foreseen.stdout) == (0, f"{job_id}  would be given back\n")
        process.send_signal(signal.SIGSTOP)
        result = duetime("jobs", "release", job_id, "--force", "--json", *URL)
        assert (result.exit_code, json.loads(result.stdout)) == (0, {job_id: "released"})
        assert from_json("jobs", "show", job_id, *URL)["state"] == "pending"
    assert duetime("jobs", "release", "unknown", *URL).exit_code == 3


def test_a_worker_that_does_not_give_a_job_back_is_told_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def claim_ahead() -> str:
        async with Scheduler(URL[1]) as scheduler:
            await hire(scheduler.store, "w1", lease=DAY)
            job_id = await put(scheduler.store, delay=SECOND)
            await take_one(scheduler.store, ahead=DAY)
            return job_id

    monkeypatch.setattr(releasing, "RELEASE_TIMEOUT", SECOND // 20)
    job_id = asyncio.run(claim_ahead())
    result = duetime("jobs", "release", job_id, *URL)
    assert (result.exit_code, "does not give it back; --force" in result.stdout) == (1, True)


def test_jobs_are_deleted_by_id(folder: Path) -> None:
    ids = [duetime("enqueue", "shop:scheduler", "shop.slow").stdout.strip() for _ in range(2)]
    refused = duetime("jobs", "delete", *ids, *URL)
    assert (refused.exit_code, "say --yes" in refused.stderr) == (2, True)
    result = duetime("jobs", "delete", *ids, "unknown", "--dry-run", *URL)
    told = [f"{job_id}  would be deleted" for job_id in ids] + ["unknown  there is no such job"]
    assert (result.exit_code, result.stdout.splitlines()) == (3, told)
    assert len(from_json("jobs", "list", *URL)) == 2
    assert from_json("jobs", "delete", *ids, "--yes", *URL) == dict.fromkeys(ids, "deleted")
    assert from_json("jobs", "list", *URL) == []


@pytest.mark.parametrize("command", ["delete", "purge"])
def test_what_a_worker_has_is_not_deleted(folder: Path, command: str) -> None:
    job_id = duetime("enqueue", "shop:scheduler", "shop.slow").stdout.strip()
    with worker() as process:
        until(process, "slow began")
        which = (job_id,) if command == "delete" else ("--task", "shop.slow")
        result = duetime("jobs", command, *which, "--yes", *URL)
        assert (result.exit_code, "with a worker; cancel" in result.stdout) == (1, True)
        foreseen = duetime("jobs", command, *which, "--dry-run", *URL)
        assert (foreseen.exit_code, "with a worker; cancel" in foreseen.stdout) == (1, True)
        assert from_json("jobs", "show", job_id, *URL)["state"] == "running"


def test_a_customer_is_forgotten(folder: Path) -> None:
    for name in ("Ann", "Bob", "1", "Ann"):
        duetime("enqueue", "shop:scheduler", "shop.greet", f"name={name}", "times=2")
    duetime("enqueue", "shop:scheduler", "shop.plain", "value=Ann")

    def purge(*conditions: str) -> Any:
        return from_json("jobs", "purge", *conditions, "--yes", *URL)

    ann = ("--argument", "name=Ann", "--argument", "times=2")
    foreseen = duetime("jobs", "purge", *ann, "--dry-run", *URL)
    assert (foreseen.exit_code, foreseen.stdout) == (0, "would delete 2 jobs\n")
    assert duetime("jobs", "purge", *ann, *URL).exit_code == 2
    assert purge(*ann) == {"deleted": 2, "running": 0, "dry_run": False}
    assert purge("--argument", "name=1") == {"deleted": 0, "running": 0, "dry_run": False}
    assert purge("--argument", 'name="1"', "--state", "pending")["deleted"] == 1
    assert purge("--task", "shop.plain", "--queue", "default", "--since", "1h")["deleted"] == 1
    assert [job["arguments"]["name"] for job in from_json("jobs", "list", *URL)] == ["Bob"]


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        ((), "say which jobs to delete"),
        (("--tag", ""), "tag is empty"),
        (("--argument", "name"), "is no NAME=VALUE"),
        (("--argument", "name=Ann", "--argument", "name=Bob"), "given twice"),
        (("--state", "lost"), "lost"),
    ],
)
def test_a_purge_of_nothing_in_particular_is_refused(
    folder: Path, conditions: tuple[str, ...], said: str
) -> None:
    duetime("enqueue", "shop:scheduler", "shop.slow")
    result = duetime("jobs", "purge", *conditions, "--yes", *URL)
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr
    assert len(from_json("jobs", "list", *URL)) == 1


@pytest.mark.parametrize("command", ["delete", "purge"])
@pytest.mark.parametrize("right", [True, False])
def test_on_a_terminal_it_is_asked_what_is_to_be_deleted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, *, right: bool
) -> None:
    job_id = duetime("enqueue", "shop:scheduler", "shop.slow").stdout.strip()
    monkeypatch.setattr(output, "is_interactive", lambda: True)
    which, wanted = ((job_id,), job_id) if command == "delete" else (("--queue", "default"), "1")
    result = duetime("jobs", command, *which, *URL, stdin=f"{wanted if right else 'all'}\n")
    assert result.exit_code == (0 if right else 2)
    assert ("would delete 1 job\n" in result.stderr) == (command == "purge")
    assert len(from_json("jobs", "list", *URL)) == (not right)


@pytest.mark.covers("retention")
def test_prune_says_how_many_records_went(folder: Path) -> None:
    ids = [duetime("enqueue", "shop:scheduler", "shop.greet", "name=Ann").stdout.strip() for _ in range(3)]
    duetime("jobs", "cancel", *ids[:2], *URL)
    assert duetime("prune", "--older-than", "1d", *URL).stdout == "removed 0 jobs\n"
    assert duetime("prune", "--older-than", "0s", "--dry-run", *URL).stdout == "would remove 2 jobs\n"
    assert from_json("prune", "--older-than", "0s", *URL) == {"jobs": 2, "dry_run": False}
    assert [job["id"] for job in from_json("jobs", "list", *URL)] == ids[2:]
    assert duetime("prune", *URL).exit_code == 2
    assert duetime("prune", "--older-than", "soon", *URL).exit_code == 2


def test_a_job_that_is_not_there_has_its_own_exit_code(folder: Path) -> None:
    duetime("migrate", *URL)
    result = duetime("jobs", "show", "unknown", *URL)
    assert result.exit_code == 3
    assert "there is no job unknown" in result.stderr


@pytest.mark.covers("deep-values")
def test_rows_that_cannot_be_read_are_shown_and_break_no_list(folder: Path) -> None:
    first = duetime("enqueue", "shop:scheduler", "shop.slow").stdout.strip()
    second = duetime("enqueue", "shop:scheduler", "shop.slow").stdout.strip()
    deep = "[" * 5_000 + "]" * 5_000
    with sqlite3.connect(folder / "jobs.db") as file:
        file.execute("UPDATE duetime_jobs SET payload = ? WHERE id = ?", [deep, first])
    file.close()
    assert {job["id"] for job in from_json("jobs", "list", *URL)} == {first, second}
    assert from_json("jobs", "show", first, *URL)["arguments"] == deep
    assert second in duetime("jobs", "list", *URL).stdout
