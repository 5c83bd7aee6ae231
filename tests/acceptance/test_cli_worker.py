"""`duetime worker` as a real process, up to its exit code."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from tests.acceptance.kit import URL, duetime, from_json, until, worker


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
