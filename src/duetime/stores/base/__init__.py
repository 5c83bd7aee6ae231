"""What every store must do: the protocols, and the values that pass through them.

Times are the store's own, as integer microseconds. Verbs take and return plain values, are idempotent
under retry, and raise `StoreUnavailable` when the database cannot be reached (trying again may help) or
another `StoreError` when it cannot be used.
"""

from __future__ import annotations

from duetime.stores.base.moving_verbs import MovingStore
from duetime.stores.base.schedule_verbs import ScheduleStore
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
    SchemaStatus,
    Sight,
    SnoozeAnswer,
    Wants,
)
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
    "ScheduleStore",
    "SchemaStatus",
    "Sight",
    "SnoozeAnswer",
    "Store",
    "Wants",
    "WorkerStore",
]
