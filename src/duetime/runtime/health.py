"""How the worker's services fare, for its pulse and for whoever asks."""

from __future__ import annotations

from typing import Final

from duetime.errors import SchemaMismatch, StoreUnavailable, StoreUnusable
from duetime.runtime.failure import describe_error

DATABASE_DOWN: Final = (StoreUnavailable, StoreUnusable, SchemaMismatch)
"""Errors of the database as a whole, whatever was asked of it: until somebody mends it, the same is tried again."""


class ServiceHealth:
    """Remembers which services are failing and the last error."""

    def __init__(self) -> None:
        self.failing: dict[str, str] = {}
        self.last_error: str | None = None

    @property
    def healthy(self) -> bool:
        """Whether every service is well."""
        return not self.failing

    def failed(self, service: str, error: BaseException) -> None:
        """Note that a round failed."""
        self.last_error = self.failing[service] = f"{service}: {describe_error(error)}"

    def recovered(self, service: str) -> None:
        """Note that a round went well after failures."""
        self.failing.pop(service, None)
