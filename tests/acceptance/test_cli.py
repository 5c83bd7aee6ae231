"""The command line, by way of click where that is enough and as a real process where it is not."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from duetime import Scheduler
from duetime.cli.failures import without_passwords
from duetime.model.durations import DAY
from duetime.model.instants import SECOND
from duetime.scheduler import releasing
from duetime.testing.conformance.kit import hire, put, take_one
from tests.acceptance.kit import URL, duetime, from_json, until, worker
from tests.unit.test_import import HEAVY


def test_importing_the_command_line_loads_no_driver_and_no_web_code() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import duetime.cli, sys; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert HEAVY.isdisjoint(loaded.stdout.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete_commands(shell: str) -> None:
    script = duetime("completion", shell)
    assert script.exit_code == 0
    assert "_DUETIME_COMPLETE" in script.stdout


def test_commands_are_completed_for_a_shell() -> None:
    asked = {"_DUETIME_COMPLETE": "bash_complete", "COMP_WORDS": "duetime work", "COMP_CWORD": "1"}
    answer = subprocess.run(
        [sys.executable, "-c", "from duetime.cli import main; main(prog_name='duetime')"],
        env=os.environ | asked,
        check=False,
        capture_output=True,
        text=True,
    )
    assert answer.stdout.split() == ["plain,worker", "plain,workers"]


def test_help_names_the_exit_codes_and_shows_examples() -> None:
    text = duetime("--help").stdout
    assert "Exit codes:" in text
    assert "duetime worker jobs:scheduler" in text


@pytest.mark.parametrize(
    "command", ["worker", "workers", "enqueue", "jobs", "queues", "prune", "migrate", "doctor", "cron"]
)
def test_every_command_shows_an_example(command: str) -> None:
    assert f"\n    duetime {command} " in duetime(command, "--help").stdout


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        ("shop", 2, "write MODULE:OBJECT"),
        ("shop.py:scheduler", 2, "write MODULE:OBJECT"),
        ("nowhere.jobs:scheduler", 2, "there is no module 'nowhere'"),
        ("shop.jobs:scheduler", 2, "there is no module 'shop.jobs'"),
        ("shop:schedular", 2, "did you mean scheduler"),
        ("shop:xyz", 2, "did you mean scheduler?"),
        ("shop:something", 2, "shop:something is 7, not a duetime.Scheduler; did you mean scheduler?"),
        ("broken:scheduler", 1, "broken.py:2: ZeroDivisionError"),
        ("lacking:scheduler", 1, "No module named 'nothing_of_this_name'"),
        ("leaving:scheduler", 1, "importing leaving failed"),
        ("misconfigured:scheduler", 2, "importing misconfigured failed"),
        ("typo:scheduler", 1, "typo.py, line 1"),
    ],
)
def test_a_scheduler_that_cannot_be_loaded_is_one_clear_line(
    folder: Path, target: str, code: int, said: str
) -> None:
    (folder / "broken.py").write_text("one = 1\none / 0\n")
    (folder / "lacking.py").write_text("import nothing_of_this_name\n")
    (folder / "leaving.py").write_text("raise SystemExit(5)\n")
    (folder / "misconfigured.py").write_text("from duetime import Scheduler\nScheduler('nonsense')\n")
    (folder / "typo.py").write_text("def\n")

    result = duetime("worker", target)

    assert result.exit_code == code
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" in duetime("--debug", "worker", target).stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--url", "nonsense"), 2, "a database URL looks like"),
        (("--url", "oracle://db"), 2, "oracle://"),
        (("--url", "sqlite:////nowhere/at/all/jobs.db"), 4, "nowhere"),
        (("--url", "sqlite:///shop.py"), 4, "shop.py"),
        (("--url", "sqlite:///empty.db"), 4, "duetime migrate --url sqlite:///empty.db"),
        (("--namespace", "Not Allowed"), 2, "namespace"),
    ],
)
def test_a_database_that_cannot_be_used_is_one_clear_line(
    folder: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    result = duetime("jobs", "list", *arguments)
    assert result.exit_code == code
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("at postgresql://me:secret@db/app.", "at postgresql://me:***@db/app."),
        ("postgresql+asyncpg://me:se:c@r/et@db/app", "postgresql+asyncpg://me:***@db/app"),
        ("postgresql://:secret@db", "postgresql://:***@db"),
        ("postgresql://db/app?user=me&password=secret&x=1", "postgresql://db/app?user=me&password=***&x=1"),
        ("postgresql://me@db:5432/app", "postgresql://me@db:5432/app"),
        ("sqlite:///jobs.db", "sqlite:///jobs.db"),
    ],
)
def test_passwords_are_blotted_out(text: str, safe: str) -> None:
    assert without_passwords(text) == safe


@pytest.mark.parametrize("text", ["x" * 500_000, "a://b:" * 20_000])
def test_to_look_for_passwords_in_a_long_line_is_no_work(text: str) -> None:
    assert without_passwords(text) == text


def test_a_database_that_does_not_answer_is_told_without_its_password(folder: Path) -> None:
    for command in (["jobs", "list"], ["migrate"], ["doctor"]):
        result = duetime(*command, "--url", "postgresql://me:secret@127.0.0.1:1/app")
        assert result.exit_code == 4
        assert "secret" not in result.output


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
        (["shop.greet", "Ann"], 2, "name=value"),
        (["shop.greet", "name=Ann", "name=Bob"], 2, "twice"),
        (["shop.greet", "{name: Ann}"], 2, "not JSON"),
        (["shop.plain", "value=1", "--delay", "soon"], 2, "is no duration"),
        (["shop.plain", "value=1", "--delay", "-1"], 2, "is no duration"),
        (["shop.plain", "value=1", "--delay", "nan"], 2, "is no duration"),
        (["shop.plain", "value=1", "--at", "2030-01-31T09:00"], 2, "has no time zone"),
        (["shop.plain", "value=1", "--at", "tomorrow"], 2, "is no point in time"),
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
    for bad in (("--limit", "0"), ("--cursor", ids[0]), ("--since", "soon"), ("--registry", "lost")):
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

    monkeypatch.setattr(releasing, "PATIENCE", SECOND // 20)
    job_id = asyncio.run(claim_ahead())
    result = duetime("jobs", "release", job_id, *URL)
    assert (result.exit_code, "does not give it back; --force" in result.stdout) == (1, True)


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


def test_migrate_prints_checks_and_applies_what_is_missing(folder: Path) -> None:
    assert duetime("migrate", "--check", *URL).exit_code == 1
    sql = duetime("migrate", "--sql", *URL).stdout
    assert "CREATE TABLE duetime_jobs" in sql
    assert from_json("migrate", "--sql", *URL)["sql"] == sql
    assert "CREATE TABLE billing_jobs" in duetime("migrate", "--sql", "--namespace", "billing", *URL).stdout
    assert duetime("migrate", "--check", *URL).exit_code == 1

    assert from_json("migrate", *URL)["applied"] is True
    assert duetime("migrate", "--check", *URL).exit_code == 0
    assert duetime("migrate", "--sql", *URL).stdout == ""
    assert "up to date" in duetime("migrate", *URL).stdout
    assert duetime("migrate", "--sql", "--check", *URL).exit_code == 2


def test_the_printed_sql_makes_the_tables(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "by_hand.db")) as connection:
        connection.executescript(duetime("migrate", "--sql", "--url", "sqlite:///by_hand.db").stdout)
    assert duetime("migrate", "--check", "--url", "sqlite:///by_hand.db").exit_code == 0


def test_tables_newer_than_the_code_are_left_alone(folder: Path) -> None:
    duetime("migrate", *URL)
    with closing(sqlite3.connect(folder / "jobs.db")) as connection, connection:
        connection.execute(
            "INSERT INTO duetime_meta (version, name, code, applied_at) VALUES (999, 'future', '99.0', 0)"
        )
    result = duetime("migrate", *URL)
    assert result.exit_code == 1
    assert "upgrade duetime" in result.stdout
    assert duetime("jobs", "list", *URL).exit_code == 4


def test_doctor_names_the_fix_for_what_it_finds(folder: Path) -> None:
    result = duetime("doctor", *URL)
    assert result.exit_code == 1
    assert "schema" in result.stdout
    assert "Fix: duetime migrate --url sqlite:///jobs.db" in result.stdout

    duetime("migrate", *URL)
    result = duetime("doctor", "--json", *URL)
    findings = {finding["name"]: finding["ok"] for finding in json.loads(result.stdout)}
    assert findings["schema"] is True
    assert result.exit_code == (0 if all(findings.values()) else 1)


def test_a_worker_runs_jobs_and_stops_on_a_signal(folder: Path) -> None:
    ids = [
        duetime("enqueue", "shop:scheduler", "shop.greet", "name=Ann", "day=2030-01-31").stdout.strip(),
        duetime("enqueue", "shop:scheduler", "shop.fail").stdout.strip(),
    ]
    with worker("--concurrency", "2", "--grace", "5s") as process:
        assert "hello Ann 1 datetime.date(2030, 1, 31) None" in until(process, "hello")
        while not all(from_json("jobs", "show", job_id, *URL)["finished_at"] for job_id in ids):
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0

    done, failed = (from_json("jobs", "show", job_id, *URL) for job_id in ids)
    assert (done["state"], done["result"]) == ("succeeded", "Ann")
    assert failed["state"] == "failed"
    for shown in (duetime("jobs", "list", *URL).stdout, duetime("jobs", "show", ids[1], *URL).stdout):
        assert r"bell \x07 and \x1b[31mred" in shown
        assert "\x1b" not in shown


def test_a_second_signal_cancels_what_still_runs(folder: Path) -> None:
    job_id = duetime("enqueue", "shop:scheduler", "shop.slow").stdout.strip()
    with worker("--grace", "1h") as process:
        until(process, "slow began")
        process.send_signal(signal.SIGINT)
        until(process, "waiting up to 1 hour")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    job = from_json("jobs", "show", job_id, *URL)
    assert job["state"] == "pending"
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["interrupted"]


def test_a_job_that_does_not_end_makes_the_stop_unclean(folder: Path) -> None:
    duetime("enqueue", "shop:scheduler", "shop.stuck")
    with worker("--grace", "0.1") as process:
        until(process, "stuck began")
        process.send_signal(signal.SIGTERM)
        until(process, "1 job(s) did not end")
        assert process.wait(20) == 1


def test_signals_end_a_worker_whose_event_loop_is_blocked(folder: Path) -> None:
    duetime("enqueue", "shop:scheduler", "shop.block")
    with worker("--grace", "1h") as process:
        until(process, "block began")
        # Signals that come too fast are one, so they are sent until the process has counted three.
        while process.poll() is None:
            process.send_signal(signal.SIGTERM)
            time.sleep(0.02)
    assert process.returncode == 128 + signal.SIGTERM


def test_a_worker_logs_json_when_asked(folder: Path) -> None:
    with worker(
        "--log-format", "json", "--no-schedules", "--queue", "default", "--queue", "mail=5"
    ) as process:
        line = json.loads(until(process, "slots, queues"))
        assert line["level"] == "info"
        assert "queues default, mail" in line["message"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--concurrency", "0"), "concurrency"),
        (("--queue", "mail=many"), "mail=5"),
        (("--queue", "mail=0"), "limit of queue 'mail'"),
        (("--queue", "two words"), "queue"),
        (("--grace", "soon"), "is no duration"),
        (("--log-level", "loud"), "loud"),
    ],
)
def test_a_worker_refuses_options_that_cannot_work(
    folder: Path, arguments: tuple[str, ...], said: str
) -> None:
    with worker(*arguments) as process:
        output, _ = process.communicate(timeout=20)
    assert process.returncode == 2
    assert said in output
    assert "Traceback" not in output


def test_a_worker_whose_database_is_unusable_at_start_says_so_and_ends(folder: Path) -> None:
    (folder / "jobs.db").write_text("this is no database" * 100)
    with worker() as process:
        output, _ = process.communicate(timeout=20)
    assert process.returncode == 4
    assert "jobs.db" in output
    assert "Traceback" not in output
