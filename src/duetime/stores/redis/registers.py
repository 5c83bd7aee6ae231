"""What is asked for and told by registries, for the verbs that read; workers, which never ask, do not load it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, Final

from duetime.model.ids import first_id_of
from duetime.model.limit import Gate
from duetime.model.registries import LIVE, Registry, StoredQueue, Tally, registry_of
from duetime.model.states import State
from duetime.model.terms import join_tags
from duetime.stores.base import JobFilter
from duetime.stores.redis.rows import Facts

STRETCH: Final = 500
"""How many jobs one call looks at."""
BEHIND_ALL: Final = "\N{TILDE}"
"""What comes after every id."""
_LIVE_STATES: Final = frozenset({State.PENDING, State.RUNNING})
_UNSUCCESSFUL_STATES: Final = frozenset({State.FAILED, State.CANCELLED, State.SKIPPED})
_UNSUCCESSFUL: Final = frozenset({Registry.FAILED, Registry.CANCELLED, Registry.SKIPPED})


def asked(where: JobFilter) -> Facts:
    """Say which jobs are wanted, by which columns that is decided, and along which list they are looked for."""
    index, part = _index(where)
    same = {"task": where.task, "queue": where.queue, "schedule": where.schedule, "unique_key": where.key}
    same = {name: value for name, value in same.items() if value is not None}
    standings = _standings(where)
    return {
        "index": index,
        "part": part,
        "back": True,
        "after": where.before or BEHIND_ALL,
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
        "most": STRETCH,
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


def tally(row: Sequence[Any]) -> Tally:
    """Build what was counted of one kind in a queue."""
    queue, state, count, due, started = row
    return Tally(queue, State(state), count, due=due, started=started)


def tallies_of_waiting(found: Iterable[tuple[str, int, int]], *, most: int) -> list[Tally]:
    """Tell what waits in each queue, what is due and what is not, up to a bound."""
    told: list[Tally] = []
    for queue, due, later in found:
        told.append(Tally(queue, State.PENDING, min(due, most), due=True, whole=due < most))
        told.append(Tally(queue, State.PENDING, min(later, most), whole=later < most))
    return told


def queue(row: Sequence[Any]) -> StoredQueue:
    """Build what is set for a queue."""
    name, at, why, at_once, count, period = row
    return StoredQueue(name=name, paused_at=at, paused_reason=why, limit=Gate(at_once, count, period or 0))
