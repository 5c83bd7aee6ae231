"""`duetime worker --processes` and `--reload`, as real processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.kit import APP, URL, duetime, from_json, until, worker

pytestmark = pytest.mark.usefixtures("folder")


def alive() -> dict[str, int]:
    """The process of each worker that lives."""
    return {known["id"]: known["pid"] for known in from_json("workers", "list", *URL)}


def started(process: subprocess.Popen[str], count: int) -> None:
    """Wait until so many more workers have started."""
    for _ in range(count):
        until(process, "stop with Ctrl-C")


def enqueue(*arguments: str) -> str:
    return duetime("enqueue", "shop:scheduler", *arguments).stdout.strip()


def test_a_worker_process_that_dies_is_replaced_and_a_signal_ends_all() -> None:
    with worker("--processes", "3", "--name", "shop") as process:
        assert "supervising 3 workers" in until(process, "supervising")
        started(process, 3)
        before = set(alive().values())
        assert len(before) == 3
        assert process.pid not in before
        os.kill(killed := before.pop(), signal.SIGKILL)
        line = until(process, "another one starts")
        assert re.search(r"ended with exit code 137; another one starts in [01]\.\d s", line)
        started(process, 1)
        while killed in (after := set(alive().values())):
            pass  # Another worker has yet to find it dead.
        assert len(after) == 3
        assert before < after
        process.send_signal(signal.SIGTERM)
        until(process, "SIGTERM: passed on to 3 workers")
        assert process.wait(20) == 0
    assert alive() == {}


def test_a_second_signal_cancels_what_still_runs_in_each_process() -> None:
    jobs = [enqueue("shop.slow") for _ in range(2)]
    with worker("--processes", "2", "--concurrency", "1", "--grace", "1h") as process:
        for _ in jobs:
            until(process, "slow began")
        process.send_signal(signal.SIGINT)
        for _ in jobs:
            until(process, "waiting up to 1 hour")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert [from_json("jobs", "show", job_id, *URL)["state"] for job_id in jobs] == ["pending"] * 2


def test_workers_stop_when_their_supervisor_is_killed() -> None:
    with worker("--processes", "2") as process:
        started(process, 2)
        process.kill()
        for _ in range(2):
            until(process, "the process that supervises this one has ended")
        for _ in range(2):
            until(process, "stopped: ")
    assert alive() == {}


def test_a_process_that_has_run_its_jobs_is_replaced_at_once_and_one_that_is_told_to_stop_is_not() -> None:
    for name in "ABCD":
        enqueue("shop.greet", f"name={name}")
    with worker("--processes", "1", "--reload", "--max-jobs", "2") as process:
        for _ in range(2):
            until(process, "stopped: 2 runs ended")
        started(process, 1)
        duetime("workers", "stop", "--all", *URL)
        assert process.wait(20) == 0


def test_a_burst_of_several_processes_ends() -> None:
    jobs = [enqueue("shop.greet", f"name={name}") for name in "ABCD"]
    with worker("--processes", "2", "--burst") as process:
        assert process.wait(30) == 0
    assert {from_json("jobs", "show", job_id, *URL)["state"] for job_id in jobs} == {"succeeded"}


def test_code_that_changes_is_taken_up_also_after_a_mistake(folder: Path) -> None:
    shop = folder / "shop.py"
    with worker("--reload", "--grace", "1h") as process:
        started(process, 1)
        running = enqueue("shop.slow")
        until(process, "slow began")
        shop.write_text(f"{APP}\nthis is no Python\n")
        until(process, "shop.py changed: starting anew")
        until(process, "SyntaxError")
        assert "starts when code changes" in until(process, "another one")
        shop.write_text(
            APP.replace('say("slow began")', 'say("slow began anew")').replace("sleep(60)", "sleep(0)")
        )
        until(process, "slow began anew")
        until(process, f"job {running} of shop.slow succeeded")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--processes", "0"), "processes must be a whole number from 1"),
        (("--processes", "2", "--concurrency", "0"), "concurrency must be a whole number"),
        (("--reload", "--name", "two words"), "worker name"),
    ],
)
def test_options_that_cannot_work_are_refused_before_a_process_is_started(
    arguments: tuple[str, ...], said: str
) -> None:
    with worker(*arguments) as process:
        output, _ = process.communicate(timeout=20)
    assert process.returncode == 2
    assert output.count(said) == 1
    assert "supervising" not in output
