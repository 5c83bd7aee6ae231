"""The overlap policy: what a schedule may make while jobs that it made before are pending or running."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from duetime.errors import InvalidOption
from duetime.model.schedule.record import Misfire, Overlap, StoredSchedule
from duetime.model.time import Instant

TAKES_TURNS: Final[frozenset[Overlap]] = frozenset({"queue_one", "queue_all", "cancel_running"})
"""The policies under which jobs wait for each other."""


class Admitted(NamedTuple):
    """Which occurrences in a row get a job, and those before and behind them that do not."""

    before: Sequence[Instant]
    run: Sequence[Instant]
    behind: Sequence[Instant]


def admit(schedule: StoredSchedule, occurrences: Sequence[Instant]) -> Admitted:
    """Choose the occurrences that get a job now."""
    if schedule.overlap == "cancel_running":
        # Each would have ended the one before.
        return Admitted(occurrences[:-1], occurrences[-1:], [])
    room = _room(schedule)
    return Admitted([], occurrences[:room], [] if room is None else occurrences[room:])


def may_plant(schedule: StoredSchedule) -> bool:
    """Whether a job can be stored ahead of its time, or a job that is live now may forbid it at the instant."""
    if not schedule.live:
        return True
    if schedule.pause_after is not None or schedule.overlap == "cancel_running":
        return False
    return _room(schedule) != 0


def in_turn(schedule: StoredSchedule, *, beside: bool) -> bool:
    """Whether jobs are to wait for each other: by the policy, or since they are made beside others of the schedule."""
    return schedule.overlap in TAKES_TURNS or (beside and schedule.overlap == "skip")


def check_turns(overlap: Overlap, misfire: Misfire, *, task: str, limited: bool) -> None:
    """Refuse policies under which the jobs of a limited task would have to wait at two gates."""
    if not limited:
        return
    if overlap in TAKES_TURNS:
        raise InvalidOption(
            f"overlap={overlap!r} does not go with limit= or rate=, which task {task} has: a job waits for one thing; "
            "use overlap='skip' or 'allow', or take the limit off the task"
        )
    if misfire == "all" and overlap == "skip":
        raise InvalidOption(
            f"misfire='all' runs what was missed one after the other, which does not go with limit= or rate=, which "
            f"task {task} has; use overlap='allow' to leave it to the limit, or misfire='latest'"
        )


def _room(schedule: StoredSchedule) -> int | None:
    """How many jobs may be made; `None` for any number."""
    match schedule.overlap:
        case "skip":
            return 0 if schedule.live else None
        case "queue_one":
            return max(0, 2 - schedule.live)
        case "queue_all":
            return max(0, 1 + (schedule.overlap_limit or 0) - schedule.live)
        case _:
            return None
