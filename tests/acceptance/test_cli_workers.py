"""`duetime workers`, with real workers to tell something to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.acceptance.kit import URL, duetime, from_json, until, worker

STARTED = re.compile(r"worker (\w+) started")


def id_of(line: str) -> str:
    found = STARTED.search(line)
    assert found is not None
    return found[1]


@pytest.mark.usefixtures("folder")
def test_a_worker_is_listed_shown_paused_resumed_and_stopped() -> None:
    with worker() as process:
        worker_id = id_of(until(process, "started: pid"))
        prefix = worker_id[:8]
        (listed,) = from_json("workers", "list", *URL)
        assert (listed["id"], listed["pid"], listed["state"]) == (worker_id, process.pid, "alive")
        assert "shop.greet" in listed["tasks"]

        assert duetime("workers", "pause", prefix, "--reason", "why", *URL).stdout == (
            f"{worker_id}  paused; 0 jobs still running\n"
        )
        shown = from_json("workers", "show", prefix, *URL)
        assert (shown["paused"], shown["paused_reason"]) == (True, "why")
        assert [command["kind"] for command in shown["commands"]] == ["pause"]
        assert "alive, paused" in duetime("workers", "list", *URL).stdout
        assert "pause: paused; 0 jobs" in duetime("workers", "show", worker_id, *URL).stdout

        resumed = duetime("workers", "resume", "-", *URL, stdin=f"{worker_id}  from a list\n")
        assert resumed.stdout == f"{worker_id}  resumed\n"
        assert from_json("workers", "stop", "--all", *URL) == {
            worker_id: {"answer": "stopping; 0 jobs may end within the grace time", "error": None}
        }
        until(process, "stopped")
        assert process.wait(20) == 0

    assert duetime("workers", "list", *URL).stdout == "no workers\n"
    assert duetime("workers", "stop", "--all", *URL).stdout == "no workers\n"
    assert worker_id in duetime("workers", "list", "--all", *URL).stdout
    gone = duetime("workers", "pause", worker_id, *URL)
    assert gone.exit_code == 1
    assert f"{worker_id} on " in gone.stdout
    assert "stopped at 20" in gone.stdout


@pytest.mark.usefixtures("folder")
def test_stop_now_cancels_what_runs_and_stacks_show_it() -> None:
    duetime("enqueue", "shop:scheduler", "shop.slow")
    with worker("--grace", "1h") as process:
        worker_id = id_of(until(process, "started: pid"))
        until(process, "slow began")
        stacks = duetime("workers", "stacks", worker_id, *URL).stdout
        assert "of shop.slow" in stacks
        assert "await asyncio.sleep(60)" in stacks
        assert "1 job cancelled" in duetime("workers", "stop", worker_id, "--now", *URL).stdout
        assert process.wait(20) == 0


@pytest.mark.parametrize("command", ["pause", "resume", "stop", "stacks"])
@pytest.mark.parametrize("given", [[], ["0123", "--all"]])
def test_which_workers_are_meant_must_be_said(folder: Path, command: str, given: list[str]) -> None:
    result = duetime("workers", command, *given, "--url", f"sqlite:///{folder}/empty.db")
    assert result.exit_code == 2
    assert "name the workers or say --all" in result.stderr


@pytest.mark.usefixtures("folder")
def test_a_worker_that_nobody_knows_has_its_own_exit_code() -> None:
    duetime("migrate", *URL)
    for command in ("show", "pause"):
        result = duetime("workers", command, "0123", *URL)
        assert result.exit_code == 3
        assert "there is no worker 0123" in result.stderr
    assert duetime("workers", "list", *URL).stdout == "no workers\n"


@pytest.mark.usefixtures("folder")
def test_the_beginning_of_several_ids_is_refused_with_all_of_them() -> None:
    with worker() as first, worker() as second:
        ids = [id_of(until(process, "started: pid")) for process in (first, second)]
        result = duetime("workers", "stop", "", *URL)
        assert result.exit_code == 2
        assert all(worker_id in result.stderr for worker_id in ids)
        both = from_json("workers", "stop", *ids, *URL)
        assert set(both) == set(ids)
        for process in (first, second):
            assert process.wait(20) == 0
