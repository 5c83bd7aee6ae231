"""What every store must do: the protocols, and the values that pass through them.

Times are the store's own, as integer microseconds. Verbs take and return plain values, are idempotent
under retry, and raise `StoreUnavailable` when the database cannot be reached (trying again may help) or
another `StoreError` when it cannot be used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from duetime.lazy_names import lazy_getattr
from duetime.stores.base.values import (
    CancelAnswer,
    Capabilities,
    ClaimRequest,
    DoctorCheck,
    DueSchedules,
    Hint,
    JobFilter,
    LimitedClaims,
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
    SnoozeAnswer,
)

if TYPE_CHECKING:
    from duetime.stores.base.protocols import (
        CommandStore,
        ControlStore,
        HandlerTransaction,
        JobStore,
        MovingStore,
        ReadStore,
        ScheduleStore,
        Store,
        WorkerStore,
    )

__all__ = [
    "CancelAnswer",
    "Capabilities",
    "ClaimRequest",
    "CommandStore",
    "ControlStore",
    "DoctorCheck",
    "DueSchedules",
    "HandlerTransaction",
    "Hint",
    "JobFilter",
    "JobStore",
    "LimitedClaims",
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
    "SnoozeAnswer",
    "Store",
    "WorkerStore",
]

_LATER: Final = {
    "CommandStore": "duetime.stores.base.protocols",
    "ControlStore": "duetime.stores.base.protocols",
    "JobStore": "duetime.stores.base.protocols",
    "HandlerTransaction": "duetime.stores.base.protocols",
    "MovingStore": "duetime.stores.base.protocols",
    "ReadStore": "duetime.stores.base.protocols",
    "ScheduleStore": "duetime.stores.base.protocols",
    "Store": "duetime.stores.base.protocols",
    "WorkerStore": "duetime.stores.base.protocols",
}
"""Where the protocols live, which nothing but a checker of types needs: they take a tenth of a megabyte."""

if not TYPE_CHECKING:
    __getattr__ = lazy_getattr(globals(), _LATER)
