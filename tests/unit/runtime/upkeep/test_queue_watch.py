"""A worker says which jobs wait for a worker that there is not."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pytest

from duetime.model.queues import DueJobs
from duetime.model.stored.jobs import StoredWorker
from duetime.runtime.options import WorkerOptions
from duetime.runtime.upkeep.queue_watch import QueueWatch
from tests.unit.model.explain.explain_kit import ALIVE
from tests.unit.runtime.kit import context_of

NONE: Mapping[str, Sequence[str]] = MappingProxyType({})
OWN = DueJobs("default", "report", 1)
MAIL = DueJobs("mail", "send", 3)
MAIL_WAITS = ("WARNING", "3 due jobs wait, and no worker serves queue mail")


class Fleet:
    """A store of which only due jobs and workers are asked."""

    def __init__(self, *due: DueJobs, serving: Sequence[str] = ("default",)) -> None:
        self.due = due
        self.serving = serving
        self.asked_for_workers = 0

    async def due_jobs(self, *, most: int) -> Sequence[DueJobs]:
        del most
        return self.due

    async def workers(self) -> Sequence[StoredWorker]:
        self.asked_for_workers += 1
        return [replace(ALIVE, queues=tuple(self.serving), tasks=("report", "send"))]


def watch(fleet: Fleet, left_out: Mapping[str, Sequence[str]] = NONE) -> QueueWatch:
    """The watch of a worker that serves the queue `default` and knows the task `report`."""
    options = WorkerOptions(queues={"default": None})
    return QueueWatch(context_of(fleet, options=options, handlers={"report": None}), left_out=left_out)


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    found = [(record.levelname, record.getMessage()) for record in caplog.records]
    caplog.clear()
    return found


async def test_what_waits_in_a_queue_that_no_worker_serves_is_told_once_until_one_does(
    caplog: pytest.LogCaptureFixture,
) -> None:
    looking = watch(fleet := Fleet(OWN, MAIL))
    await looking.round()
    assert said(caplog) == [MAIL_WAITS]
    await looking.round()
    assert said(caplog) == []
    fleet.serving = ("default", "mail")
    await looking.round()
    assert said(caplog) == []
    fleet.serving = ("default",)
    await looking.round()
    assert said(caplog) == [MAIL_WAITS]


async def test_the_workers_are_not_read_for_jobs_that_this_one_takes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    await watch(fleet := Fleet(OWN)).round()
    assert fleet.asked_for_workers == 0
    assert said(caplog) == []


async def test_what_the_worker_leaves_out_is_told_at_its_start_and_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    looking = watch(Fleet(serving=("default", "bulk")), {"mail": ["send", "nightly"], "bulk": ["load"]})
    await looking.round()
    assert said(caplog) == [
        ("WARNING", "no worker serves queue mail, which this one leaves out: send, nightly"),
        ("INFO", "this worker leaves queue bulk to others: load"),
    ]
    await looking.round()
    assert said(caplog) == []
