"""The one state machine of a job."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class State(StrEnum):
    """Where a job is in its life."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"

    @property
    def terminal(self) -> bool:
        """Whether the job has ended for good."""
        return not LEGAL[self]


LEGAL: Mapping[State, frozenset[State]] = MappingProxyType(
    {
        State.PENDING: frozenset({State.RUNNING, State.CANCELLED, State.SKIPPED}),
        # Running to running is a rescue: the same job under a new fence.
        State.RUNNING: frozenset(State),
        **dict.fromkeys((State.SUCCEEDED, State.FAILED, State.CANCELLED, State.SKIPPED), frozenset[State]()),
    }
)
"""The legal transitions; the stores, the drawing in the docs and the property tests read this table."""
