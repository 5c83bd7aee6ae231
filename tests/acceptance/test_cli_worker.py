"""`duetime worker` as a real process, up to its exit code."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import time
from pathlib import Path

import httpx
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
        until(process, "1 job did not end")
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


def test_a_worker_logs_each_job_and_the_traceback_of_one_that_fails(folder: Path) -> None:
    with worker() as process:
        until(process, "stop with Ctrl-C")
        done = duetime("enqueue", "shop:scheduler", "shop.greet", "name=Ann").stdout.strip()
        assert f"INFO     duetime.jobs: job {done} of shop.greet succeeded (attempt 1, " in until(
            process, "succeeded"
        )
        failed = duetime("enqueue", "shop:scheduler", "shop.fail").stdout.strip()
        line = until(process, "ERROR")
        assert f"duetime.jobs: job {failed} of shop.fail failed (attempt 1, " in line
        assert line.endswith(": RuntimeError: bell \\x07 and \\x1b[31mred\n")
        assert until(process, "Traceback") == "  Traceback (most recent call last):\n"
        assert until(process, "RuntimeError: bell") == "  RuntimeError: bell \\x07 and \\x1b[31mred\n"
        process.send_signal(signal.SIGTERM)
        until(process, "stopped: 2 runs ended, 1 job failed")
        assert process.wait(20) == 0


def test_a_worker_logs_the_fields_of_a_job_as_json(folder: Path) -> None:
    job_id = duetime("enqueue", "shop:scheduler", "shop.fail").stdout.strip()
    with worker("--log-format", "json") as process:
        line = json.loads(until(process, "duetime.jobs"))
        assert {name: line[name] for name in ("level", "job_id", "task", "queue", "attempt", "outcome")} == {
            "level": "error",
            "job_id": job_id,
            "task": "shop.fail",
            "queue": "default",
            "attempt": 1,
            "outcome": "failed",
        }
        assert "Traceback" in line["exception"]
        assert line["duration"] >= 0


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
        (("--max-jobs", "0"), "max_jobs must be a whole number from 1"),
        (("--name", "two words"), "worker name"),
        (("--queue", "mail=0"), "limit of queue 'mail'"),
        (("--queue", "mail=5, default"), "repeat it for several: --queue mail=5 --queue default"),
        (("--queue", "two words"), "queue"),
        (("--grace", "soon"), "is not a duration"),
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


@pytest.mark.covers("lost-file")
def test_a_worker_whose_file_is_deleted_ends_with_an_error(folder: Path) -> None:
    duetime("migrate", *URL)
    with worker() as process:
        until(process, "stop with Ctrl-C")
        for file in folder.glob("jobs.db*"):
            file.unlink()
        assert "CRITICAL" in until(process, "was deleted or replaced while it was open")
        assert process.wait(20) == 4


def test_a_burst_runs_what_is_due_and_ends(folder: Path) -> None:
    due = [duetime("enqueue", "shop:scheduler", "shop.greet", f"name={name}").stdout for name in "AB"]
    later = duetime("enqueue", "shop:scheduler", "shop.greet", "name=C", "--delay", "1h").stdout.strip()
    with worker("--burst") as process:
        assert "until nothing is due" in until(process, "started: pid")
        until(process, "stopped: 2 runs ended")
        assert process.wait(20) == 0
    assert [from_json("jobs", "show", job_id.strip(), *URL)["state"] for job_id in due] == ["succeeded"] * 2
    assert from_json("jobs", "show", later, *URL)["state"] == "pending"


def test_a_worker_ends_after_as_many_jobs_as_it_was_told_to_run(folder: Path) -> None:
    for name in "ABCDE":
        duetime("enqueue", "shop:scheduler", "shop.greet", f"name={name}")
    with worker("--max-jobs", "3") as process:
        until(process, "stopped: 3 runs ended")
        assert process.wait(20) == 0
    states = [job["state"] for job in from_json("jobs", "list", *URL)]
    assert sorted(states) == ["pending"] * 2 + ["succeeded"] * 3


def test_workers_are_listed_and_told_by_the_name_that_they_were_given(folder: Path) -> None:
    with worker("--name", "mail") as first, worker("--name", "mail") as second, worker() as third:
        for process in (first, second, third):
            until(process, "stop with Ctrl-C")
        named = [known["name"] for known in from_json("workers", "list", *URL)]
        assert sorted(named, key=str) == [None, "mail", "mail"]
        assert duetime("workers", "list", *URL).stdout.splitlines()[0].split()[:2] == ["ID", "NAME"]
        assert duetime("workers", "show", "mail", *URL).exit_code == 2
        assert duetime("workers", "stop", "mail", *URL).exit_code == 0
        assert (first.wait(20), second.wait(20), third.poll()) == (0, 0, None)
    assert duetime("workers", "show", "mail", *URL).exit_code == 0


def test_a_worker_tells_over_http_whether_it_is_well(folder: Path) -> None:
    with worker("--health-port", "0") as process:
        address = until(process, "health: ").partition("health: ")[2].partition("/live")[0]
        with httpx.Client(base_url=address) as probe:
            for path in ("/live", "/ready"):
                assert probe.get(path).json() == {"status": "ok"}
                assert probe.head(path).status_code == 200
            assert probe.get("/health/schedules").json() == {"overdue": []}
            assert probe.get("/nothing").status_code == 404
            assert probe.post("/live").status_code == 405
        host, _, port = address.removeprefix("http://").partition(":")
        assert host == "127.0.0.1"
        for garbage in (b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"A" * 100_000):
            with (
                socket.create_connection((host, int(port)), timeout=20) as line,
                contextlib.suppress(OSError),
            ):
                line.sendall(garbage)
                line.recv(1_000)
        assert httpx.get(f"{address}/live").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    refused = duetime("worker", "shop:scheduler", "--health-port", "0", "--processes", "2")
    assert "start each with a port of its own" in refused.stderr


def test_a_probe_tells_whether_a_worker_is_alive_here(folder: Path) -> None:
    def code(*arguments: str) -> int:
        return duetime("workers", "check", *arguments, *URL).exit_code

    duetime("migrate", *URL)
    assert code() == 1
    with worker("--name", "mail") as process:
        until(process, "stop with Ctrl-C")
        assert (code(), code("mail"), code("web")) == (0, 0, 1)
        assert duetime("workers", "check", *URL).stdout == f"alive: pid {process.pid}\n"
        process.kill()
        process.wait()
        # Its lease has not ended yet.
        assert [known["state"] for known in from_json("workers", "list", *URL)] == ["alive"]
        assert code() == 1


def test_a_probe_is_not_about_the_workers_of_other_machines(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with worker() as process:
        until(process, "stop with Ctrl-C")
        monkeypatch.setattr("duetime.cli.workers.host_key", lambda: "another")
        assert duetime("workers", "check", *URL).exit_code == 1


def test_a_probe_does_not_have_workers_restarted_because_the_database_is_down(folder: Path) -> None:
    answer = duetime("workers", "check", "--url", "postgresql://me:secret@127.0.0.1:1/app")
    assert (answer.exit_code, answer.stdout[:13]) == (0, "cannot tell: ")
    assert "secret" not in answer.stdout
    assert duetime("workers", "check", "--url", "sqlite:///nosuch.db").exit_code == 4
