"""What every store must do: the protocols, and the values that pass through them.

Times are the store's own, as integer microseconds. Verbs take and return plain values, are idempotent
under retry, and raise `StoreUnavailable` when the database cannot be reached (trying again may help) or
another `StoreError` when it cannot be used.
"""

from __future__ import annotations

from duetime.stores.base.protocols import (
    CommandStore,
    ControlStore,
    HandlerTransaction,
    JobStore,
    LockStore,
    MovingStore,
    ReadStore,
    ScheduleStore,
    Store,
    WorkerStore,
)
from duetime.stores.base.values import (
    BEHIND_ALL_IDS,
    CancelAnswer,
    Capabilities,
    ClaimRequest,
    DeleteAnswer,
    DoctorCheck,
    DueSchedules,
    EditAnswer,
    Hint,
    JobFilter,
    LimitedClaims,
    LockAnswer,
    NextDue,
    OrphanedJob,
    PeerWorker,
    PruneResult,
    Pulse,
    PulseFindings,
    PulseQuery,
    QueueOutlook,
    ReleaseAnswer,
    RescueResult,
    SchemaStatus,
    StoredLock,
)

__all__ = [
    "BEHIND_ALL_IDS",
    "CancelAnswer",
    "Capabilities",
    "ClaimRequest",
    "CommandStore",
    "ControlStore",
    "DeleteAnswer",
    "DoctorCheck",
    "DueSchedules",
    "EditAnswer",
    "HandlerTransaction",
    "Hint",
    "JobFilter",
    "JobStore",
    "LimitedClaims",
    "LockAnswer",
    "LockStore",
    "MovingStore",
    "NextDue",
    "OrphanedJob",
    "PeerWorker",
    "PruneResult",
    "Pulse",
    "PulseFindings",
    "PulseQuery",
    "QueueOutlook",
    "ReadStore",
    "ReleaseAnswer",
    "RescueResult",
    "ScheduleStore",
    "SchemaStatus",
    "Store",
    "StoredLock",
    "WorkerStore",
]
