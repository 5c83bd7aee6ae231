from __future__ import annotations

from dataclasses import replace

from duetime.model.fleet import Fleet
from tests.unit.model.explain_kit import ALIVE

FIRES_ONLY = replace(ALIVE, queues=(), slots=0, tasks=())


def test_only_those_that_are_alive_count() -> None:
    gone = [replace(ALIVE, state="dead"), replace(ALIVE, state="stopped")]
    assert Fleet.of([*gone, ALIVE]) == Fleet((ALIVE,))
    assert not Fleet.of(gone).fires


def test_a_task_is_unknown_only_where_somebody_runs_jobs() -> None:
    assert Fleet((ALIVE,)).knows("report") is True
    assert Fleet((ALIVE,)).knows("gone") is False
    assert Fleet().knows("report") is None
    assert Fleet((FIRES_ONLY,)).knows("report") is None


def test_one_that_only_fires_serves_no_queue() -> None:
    fleet = Fleet((FIRES_ONLY, replace(ALIVE, queues=("mail",))))
    assert fleet.fires
    assert fleet.queues == {"mail"}
    assert [worker.queues for worker in fleet.serving("mail")] == [("mail",)]
    assert fleet.serving("slow") == []
