"""`duetime scheduler` fires schedules, whose jobs a `duetime worker` runs."""

from __future__ import annotations

import re

from tests.acceptance.kit import duetime, from_json, program, until, worker
from tests.acceptance.schedules.kit import put


def test_one_process_fires_and_another_runs() -> None:
    put("often", "shop.greet", "name=ann", "--every", "1s")
    with program("scheduler") as firing:
        assert "runs no jobs, fires schedules and declares 0," in until(firing, "started: pid")
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


def test_the_list_tells_how_schedules_fare() -> None:
    put("often", "shop.greet", "name=ann", "--every", "1h")
    put("broken", "shop.fail", "--every", "1h")
    assert [(one["last_run"], one["succeeded"]) for one in from_json("schedules", "list")] == [(None, 0)] * 2
    for name in ("often", "often", "broken"):
        duetime("schedules", "trigger", name)
    with worker() as working:
        until(working, "stop with")
        while sum(one["succeeded"] + one["failed"] for one in from_json("schedules", "list")) < 3:
            pass
        table = duetime("schedules", "list").stdout.splitlines()
    assert re.search(r"^broken .* failed \d+s ago: RuntimeError: .* 0 +1 +shop.fail ", table[1])
    assert re.search(r"^often .* succeeded \d+s ago +2 +0 +shop.greet ", table[2])
    broken, often = from_json("schedules", "list")
    assert (broken["last_run"]["state"], broken["last_run"]["occurrence"]) == ("failed", None)
    assert (often["last_run"]["error"], often["at_least"]) == (None, [])
    assert "on record        2 succeeded, 0 failed" in duetime("schedules", "show", "often").stdout


def test_a_worker_that_leaves_schedules_alone_fires_none() -> None:
    put("often", "shop.greet", "name=ann", "--every", "1s")
    with worker("--no-schedules") as working:
        until(working, "stop with")
        assert "no living worker fires schedules" in duetime("schedules", "list").stderr
        assert "no living worker fires schedules" in duetime("schedules", "show", "often").stdout
