from __future__ import annotations

from dataclasses import replace

import pytest

from duetime.model.audit import ITSELF
from duetime.model.parking import CodeSchedule, park, undeclared
from duetime.model.schedule import StoredSchedule

SCHEDULE = StoredSchedule(
    name="s", task="work", payload="{}", trigger="{}", declared="{}", fired_through=5, next_at=9, rev=1
)


def test_what_nobody_declares_is_found() -> None:
    found = [CodeSchedule("a", "work", parked=False), CodeSchedule("b", "work", parked=False)]
    assert undeclared(found, declared={"a"}, tasks={"work"}) == {"b"}


def test_what_is_parked_already_and_what_runs_tasks_of_others_is_left_alone() -> None:
    found = [CodeSchedule("a", "work", parked=True), CodeSchedule("b", "foreign", parked=False)]
    assert undeclared(found, declared=(), tasks={"work"}) == frozenset()


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
