"""How jobs are searched for and counted by registry; loaded only for reads, which workers never make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, Final

from duetime.model.ids import first_id_of
from duetime.model.job import join_tags
from duetime.model.limits import Gate
from duetime.model.queues import LIVE, Registry, StateCount, StoredQueue, registry_of
from duetime.model.states import State
from duetime.stores.base import JobFilter
from duetime.stores.redis.rows import NamedValues

JOBS_PER_CALL: Final = 500
"""How many jobs one call looks at."""
AFTER_ALL_IDS: Final = "\N{TILDE}"
"""What comes after every id."""
_LIVE_STATES: Final = frozenset({State.PENDING, State.RUNNING})
_UNSUCCESSFUL_STATES: Final = frozenset({State.FAILED, State.CANCELLED, State.SKIPPED})
_UNSUCCESSFUL: Final = frozenset({Registry.FAILED, Registry.CANCELLED, Registry.SKIPPED})


def search_request(where: JobFilter) -> NamedValues:
    """Say which jobs are wanted, by which columns that is decided, and along which list they are looked for."""
    index, part = _index(where)
    same = {"task": where.task, "queue": where.queue, "schedule": where.schedule, "unique_key": where.key}
    same = {name: value for name, value in same.items() if value is not None}
    standings = _standings(where)
    return {
        "index": index,
        "part": part,
        "back": True,
        "after": where.before or AFTER_ALL_IDS,
        "from": None if where.since is None else first_id_of(where.since),
        "same": same,
        "since": where.since,
        "tag": where.tag and join_tags((where.tag,)),
        "standings": standings,
        "columns": [
            *same,
            *(["created_at"] if where.since is not None else []),
            *(["tags"] if where.tag is not None else []),
            *(["state", "due_at", "started_at"] if standings is not None else []),
        ],
        "limit": where.limit,
        "most": JOBS_PER_CALL,
    }


def _index(where: JobFilter) -> tuple[str, str | None]:
    if where.schedule is not None:
        return "history", where.schedule
    if where.state in _LIVE_STATES or where.registry in LIVE:
        return "live", None
    seldom = where.state in _UNSUCCESSFUL_STATES or where.registry in _UNSUCCESSFUL
    return ("unsuccessful", None) if seldom else ("jobs", None)


def _standings(where: JobFilter) -> dict[str, bool] | None:
    """Name every state that a job may be in, with whether it is due and whether it has started; `None`: any."""
    if where.state is None and where.registry is None:
        return None
    return {
        f"{state}|{due:d}|{started:d}": True
        for state, due, started in product(State, (False, True), (False, True))
        if where.state in {None, state}
        and where.registry in {None, registry_of(state, due=due, started=started)}
    }


def read_tally(row: Sequence[Any]) -> StateCount:
    """Build what was counted of one kind in a queue."""
    queue, state, count, due, started = row
    return StateCount(queue, State(state), count, due=due, started=started)


def read_waiting_tallies(found: Iterable[tuple[str, int, int]], *, most: int) -> list[StateCount]:
    """Tell what waits in each queue, what is due and what is not, up to a bound."""
    told: list[StateCount] = []
    for queue, due, later in found:
        told.append(StateCount(queue, State.PENDING, min(due, most), due=True, whole=due < most))
        told.append(StateCount(queue, State.PENDING, min(later, most), whole=later < most))
    return told


def read_queue(row: Sequence[Any]) -> StoredQueue:
    """Build what is set for a queue."""
    name, at, why, at_once, count, period = row
    return StoredQueue(name=name, paused_at=at, paused_reason=why, limit=Gate(at_once, count, period or 0))
