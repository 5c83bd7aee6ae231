from __future__ import annotations

from dataclasses import replace

from duetime.model.stored.jobs import LiveWorkers
from tests.unit.model.explain.explain_kit import ALIVE

FIRES_ONLY = replace(ALIVE, queues=(), slots=0, tasks=())


def test_only_those_that_are_alive_count() -> None:
    gone = [replace(ALIVE, state="dead"), replace(ALIVE, state="stopped")]
    assert LiveWorkers.of([*gone, ALIVE]) == LiveWorkers((ALIVE,))
    assert not LiveWorkers.of(gone).fires


def test_a_task_is_unknown_only_where_somebody_runs_jobs() -> None:
    assert LiveWorkers((ALIVE,)).knows("report") is True
    assert LiveWorkers((ALIVE,)).knows("gone") is False
    assert LiveWorkers().knows("report") is None
    assert LiveWorkers((FIRES_ONLY,)).knows("report") is None


def test_one_that_only_fires_serves_no_queue() -> None:
    fleet = LiveWorkers((FIRES_ONLY, replace(ALIVE, queues=("mail",))))
    assert fleet.fires
    assert fleet.queues == {"mail"}
    assert [worker.queues for worker in fleet.serving("mail")] == [("mail",)]
    assert fleet.serving("slow") == []
