"""Lends a worker's handlers transactions of its store, none so long that it would cost the worker its lease."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from duetime.errors import InvalidOption
from duetime.model import durations
from duetime.model.instants import SECOND, Micros

if TYPE_CHECKING:
    from duetime.stores.base import JobStore, Loan

_USUAL: Final = 5 * SECOND
_LONGEST: Final = 10 * SECOND
"""Where there is one writer: the others give up after that."""
_PARTS: Final = 3
"""Into how many parts a lease falls, so that two of them are left to renew it."""


class Lending:
    """Knows how long a transaction may keep the store."""

    def __init__(self, store: JobStore, *, lease: Micros) -> None:
        self._store = store
        self._longest = min(lease // _PARTS, _LONGEST) if store.single_writer else None

    def bound(self, timeout: Micros | None) -> Micros:
        """Return how long a transaction may be open; raises `InvalidOption` for one that asks for too much."""
        longest = self._longest
        if timeout is None:
            return _USUAL if longest is None else min(_USUAL, longest)
        if longest is not None and timeout > longest:
            text = (
                f"timeout must be at most {durations.describe(longest)} on this database: nobody else can write while "
                "the transaction is open, and this worker has its lease to renew; do what takes long before the block"
            )
            raise InvalidOption(text)
        return timeout

    def lend(self, timeout: Micros) -> Loan:
        """Return a transaction that is yet to begin."""
        return self._store.lend(timeout=timeout)
