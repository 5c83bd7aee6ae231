"""How the worker's services fare, for its pulse and for whoever asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from duetime.errors import SchemaMismatch, StoreLost, StoreUnavailable, StoreUnusable
from duetime.runtime.failure import describe_error

DATABASE_DOWN: Final = (StoreUnavailable, StoreUnusable, SchemaMismatch)
"""Errors of the database as a whole, whatever was asked of it: until somebody mends it, the same is tried again."""


class ServiceHealth:
    """Remembers which services are failing and the last error."""

    def __init__(self, on_lost: Callable[[StoreLost], object] | None = None) -> None:
        """Call `on_lost` when a service finds that its store is lost."""
        self._on_lost = on_lost
        self.failing: dict[str, str] = {}
        self.last_error: str | None = None

    @property
    def healthy(self) -> bool:
        """Whether every service is well."""
        return not self.failing

    def failed(self, service: str, error: BaseException) -> None:
        """Note that a round failed."""
        self.last_error = self.failing[service] = f"{service}: {describe_error(error)}"
        if isinstance(error, StoreLost) and self._on_lost is not None:
            self._on_lost(error)

    def recovered(self, service: str) -> None:
        """Note that a round went well after failures."""
        self.failing.pop(service, None)
