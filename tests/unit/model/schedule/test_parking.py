from __future__ import annotations

from dataclasses import replace

import pytest

from duetime.model.schedule.actions import (
    UNDECLARED_GRACE,
    CodeSchedule,
    park,
    undeclared,
    undeclared_by_workers,
)
from duetime.model.schedule.record import StoredSchedule
from duetime.model.stored.audit import ITSELF
from duetime.model.stored.jobs import StoredWorker
from duetime.model.worker import WorkerState, WorkerStats

SCHEDULE = StoredSchedule(
    name="s", task="work", payload="{}", trigger="{}", declared="{}", fired_through=5, next_at=9, rev=1
)


def test_what_nobody_declares_is_found() -> None:
    found = [CodeSchedule("a", "work", parked=False), CodeSchedule("b", "work", parked=False)]
    assert undeclared(found, declared={"a"}, tasks={"work"}) == {"b"}


def test_what_is_parked_already_and_what_runs_tasks_of_others_is_left_alone() -> None:
    found = [CodeSchedule("a", "work", parked=True), CodeSchedule("b", "foreign", parked=False)]
    assert undeclared(found, declared=(), tasks={"work"}) == frozenset()


def worker(*declares: str, state: WorkerState = "alive", until: int = 0) -> StoredWorker:
    return StoredWorker(
        id="w",
        state=state,
        host="h",
        host_key=None,
        pid=1,
        pid_started=None,
        version="1",
        queues=(),
        tasks=(),
        declares=declares,
        fires=True,
        slots=1,
        started_at=0,
        beat_at=0,
        lease_until=until,
        stats=WorkerStats(),
    )


NAMES = frozenset("ab")


def test_what_a_living_worker_declares_is_not_forsaken_however_late_it_is() -> None:
    assert undeclared_by_workers(NAMES, [worker("a"), worker("c")], now=2 * UNDECLARED_GRACE) == {"b"}


@pytest.mark.parametrize("state", ["stopped", "dead"])
def test_what_a_worker_declared_that_is_gone_is_forsaken_after_a_while(state: WorkerState) -> None:
    gone = worker("a", state=state, until=7)
    assert undeclared_by_workers(NAMES, [gone], now=7 + UNDECLARED_GRACE - 1) == {"b"}
    assert undeclared_by_workers(NAMES, [gone], now=7 + UNDECLARED_GRACE) == {"a", "b"}


def test_nothing_is_forsaken_while_a_worker_does_not_say_what_it_declares() -> None:
    silent = replace(worker(), declares=None)
    assert undeclared_by_workers(NAMES, [worker("a"), silent], now=0) == frozenset()
    assert undeclared_by_workers(NAMES, [replace(silent, state="stopped")], now=UNDECLARED_GRACE) == NAMES


def test_a_parked_schedule_has_no_next_time_and_its_history_says_why() -> None:
    change = park(SCHEDULE, now=7)
    assert change is not None
    assert (change.after.parked_at, change.after.next_at, change.after.fired_through) == (7, None, 5)
    assert change.withdraw == "schedule parked"
    assert change.entry is not None
    assert (change.entry.verb, change.entry.who) == ("park", ITSELF)


@pytest.mark.parametrize("changes", [{"owner": "user"}, {"parked_at": 3}])
def test_what_is_not_the_codes_own_or_parked_is_not_parked(changes: dict[str, object]) -> None:
    assert park(replace(SCHEDULE, **changes), now=7) is None  # type: ignore[arg-type]
