"""Which queues a worker serves, and how one that no worker serves comes to light."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from duetime.cli.command import load_scheduler
from tests.acceptance.kit import APP, URL, duetime, from_json, until, worker

QUEUES = f"""{APP}

@scheduler.task(queue="mail")
async def send() -> str:
    return "sent"


@scheduler.schedule(every("1d"), name="nightly", queue="bulk")
async def load() -> None:
    pass
"""

pytestmark = pytest.mark.usefixtures("with_queues")


@pytest.fixture
def with_queues(folder: Path) -> None:
    """An application whose tasks and schedules name several queues."""
    (folder / "shop.py").write_text(QUEUES.replace("import Scheduler", "import Scheduler, every"))


def enqueue(*arguments: str) -> str:
    return duetime("enqueue", "shop:scheduler", *arguments).stdout.strip()


def test_a_worker_serves_every_queue_that_its_tasks_and_schedules_name_and_says_so() -> None:
    job_id = enqueue("shop.send")
    with worker() as process:
        assert "queues default, mail, bulk, " in until(process, "started: pid")
        until(process, f"job {job_id} of shop.send succeeded")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_a_worker_with_queues_of_its_own_warns_of_the_tasks_that_it_leaves_out() -> None:
    with worker("--queue", "default", "--queue", "bulk") as process:
        assert "queues default, bulk, " in until(process, "started: pid")
        line = until(process, "leaves out")
        assert "WARNING" in line
        assert line.endswith("no worker serves queue mail, which this one leaves out: shop.send\n")
    with worker("--queue", "mail") as process:
        until(process, "started: pid")
        with worker("--queue", "default") as second:
            assert "INFO" in until(second, "this worker leaves queue mail to others: shop.send")


def test_a_worker_warns_at_its_start_of_jobs_in_a_queue_that_no_worker_serves() -> None:
    enqueue("shop.greet", "name=Ann", "--queue", "mial")
    with worker() as process:
        assert "WARNING" in until(process, "1 due job waits, and no worker serves queue mial")


def test_the_doctor_and_the_list_of_queues_tell_of_jobs_that_no_worker_takes() -> None:
    duetime("migrate", *URL)
    assert finding() == (True, "workers serve all that is due", None)
    enqueue("shop.greet", "name=Ann", "--queue", "mial")
    enqueue("shop.send")
    with worker("--queue", "mail") as process:
        until(process, "of shop.send succeeded")
        ok, detail, fix = finding()
        assert (ok, detail) == (False, "1 due job waits, and no worker serves queue mial")
        assert "--queue" in fix
        assert duetime("doctor", *URL).exit_code == 1
        listed = duetime("queues", "list", *URL)
        assert listed.stderr == "1 due job waits, and no worker serves queue mial\n"
        assert {queue["name"]: queue["workers"] for queue in from_json("queues", "list", *URL)} == {
            "mail": 1,
            "mial": 0,
        }


def finding() -> tuple[bool, str, Any]:
    (found,) = [check for check in from_json("doctor", *URL) if check["name"] == "queues"]
    return found["ok"], found["detail"], found["fix"]


async def test_a_lifespan_serves_the_queues_of_its_own_tasks_unless_told_otherwise() -> None:
    load_scheduler("shop:scheduler")
    shop: Any = sys.modules["shop"]
    async with shop.scheduler.lifespan():
        sent = await shop.send.enqueue()
        assert await sent.result(timeout=20) == "sent"
        (alive,) = await shop.scheduler.workers.list()
        assert alive.queues == ("default", "mail", "bulk")
    async with shop.scheduler.lifespan(queues=["default"]):
        alive = (await shop.scheduler.workers.list())[0]
        assert alive.queues == ("default",)
