from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from duetime.model.queues import (
    MOST_COUNTED,
    DueJobs,
    QueueCensus,
    Registry,
    StateCount,
    count_by_registry,
    registry_of,
    unserved,
)
from duetime.model.states import State
from duetime.model.stored.jobs import LiveWorkers
from tests.unit.model.explain.explain_kit import ALIVE


@pytest.mark.parametrize(
    ("state", "due", "started", "registry"),
    [
        (State.PENDING, False, False, "scheduled"),
        (State.PENDING, True, False, "queued"),
        (State.RUNNING, False, False, "scheduled"),
        (State.RUNNING, True, True, "active"),
        (State.SUCCEEDED, True, True, "finished"),
        (State.FAILED, True, True, "failed"),
        (State.CANCELLED, True, True, "failed"),
        (State.CANCELLED, True, False, "cancelled"),
        (State.SKIPPED, True, False, "skipped"),
    ],
)
def test_each_state_has_its_registry(state: State, registry: str, *, due: bool, started: bool) -> None:
    assert registry_of(state, due=due, started=started) == registry


def census(*tallies: StateCount, gates_whole: bool = True, history_whole: bool = True) -> QueueCensus:
    return QueueCensus([], list(tallies), gates_whole=gates_whole, history_whole=history_whole)


def test_tallies_are_summed_by_queue_and_registry() -> None:
    counts = count_by_registry(
        census(
            StateCount("a", State.PENDING, 2, due=True),
            StateCount("a", State.PENDING, 3, due=True, whole=False),
            StateCount("a", State.PENDING, 1),
            StateCount("b", State.RUNNING, 4, started=True),
        ),
        ["c"],
    )
    assert {name: count.jobs for name, count in counts.items()} == {
        "a": Counter({Registry.QUEUED: 5, Registry.SCHEDULED: 1}),
        "b": Counter({Registry.ACTIVE: 4}),
        "c": Counter(),
    }
    assert {name: count.at_least for name, count in counts.items()} == {
        "a": {Registry.QUEUED},
        "b": set(),
        "c": set(),
    }


def test_what_was_not_looked_at_may_be_in_any_queue() -> None:
    counts = count_by_registry(census(history_whole=False), ["a"])
    assert counts["a"].at_least == {
        Registry.FINISHED,
        Registry.FAILED,
        Registry.CANCELLED,
        Registry.SKIPPED,
    }
    counts = count_by_registry(census(gates_whole=False), ["a"])
    assert counts["a"].at_least == {Registry.SCHEDULED, Registry.QUEUED}


def test_jobs_are_stranded_where_no_worker_serves_the_queue_or_none_that_does_knows_the_task() -> None:
    fleet = LiveWorkers(
        (
            replace(ALIVE, queues=("default",), tasks=("report",)),
            replace(ALIVE, queues=("mail",), tasks=("send",)),
        )
    )
    due = [
        DueJobs("default", "report", 5),
        DueJobs("default", "send", 1),
        DueJobs("bulk", "report", 1),
        DueJobs("bulk", "send", 2),
        DueJobs("mail", "send", 9),
    ]
    assert [str(found) for found in unserved(due, fleet)] == [
        "1 due job waits, and no worker of queue default knows task send",
        "3 due jobs wait, and no worker serves queue bulk",
    ]


def test_of_very_many_unserved_jobs_it_is_said_that_there_may_be_more() -> None:
    [found] = unserved([DueJobs("default", "report", MOST_COUNTED)], LiveWorkers())
    assert str(found) == f"{MOST_COUNTED} due jobs or more wait, and no worker serves queue default"
