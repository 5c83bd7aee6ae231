"""What every store must do: the protocols, and the values that pass through them.

Times are the store's own, as integer microseconds. Verbs take and return plain values, are idempotent
under retry, and raise `StoreUnavailable` when the database cannot be reached (trying again may help) or
another `StoreError` when it cannot be used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from duetime.lazily import from_homes
from duetime.stores.base.values import (
    CancelAnswer,
    Capabilities,
    Check,
    Demand,
    DueSchedules,
    Hint,
    JobFilter,
    LimitedClaims,
    NextDue,
    Orphan,
    Outlook,
    Peer,
    Pruned,
    Pulse,
    ReleaseAnswer,
    Rescue,
    SchemaStatus,
    Sight,
    SnoozeAnswer,
    Wants,
)

if TYPE_CHECKING:
    from duetime.stores.base.moving_verbs import MovingStore
    from duetime.stores.base.schedule_verbs import ScheduleStore
    from duetime.stores.base.verbs import (
        CommandStore,
        ControlStore,
        JobStore,
        Loan,
        ReadStore,
        Store,
        WorkerStore,
    )

__all__ = [
    "CancelAnswer",
    "Capabilities",
    "Check",
    "CommandStore",
    "ControlStore",
    "Demand",
    "DueSchedules",
    "Hint",
    "JobFilter",
    "JobStore",
    "LimitedClaims",
    "Loan",
    "MovingStore",
    "NextDue",
    "Orphan",
    "Outlook",
    "Peer",
    "Pruned",
    "Pulse",
    "ReadStore",
    "ReleaseAnswer",
    "Rescue",
    "ScheduleStore",
    "SchemaStatus",
    "Sight",
    "SnoozeAnswer",
    "Store",
    "Wants",
    "WorkerStore",
]

_LATER: Final = {
    "CommandStore": "duetime.stores.base.verbs",
    "ControlStore": "duetime.stores.base.verbs",
    "JobStore": "duetime.stores.base.verbs",
    "Loan": "duetime.stores.base.verbs",
    "MovingStore": "duetime.stores.base.moving_verbs",
    "ReadStore": "duetime.stores.base.verbs",
    "ScheduleStore": "duetime.stores.base.schedule_verbs",
    "Store": "duetime.stores.base.verbs",
    "WorkerStore": "duetime.stores.base.verbs",
}
"""Where the protocols live, which nothing but a checker of types needs: they take a tenth of a megabyte."""

if not TYPE_CHECKING:
    __getattr__ = from_homes(globals(), _LATER)
