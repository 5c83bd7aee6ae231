"""What a handler is told that asks for a transaction."""

from __future__ import annotations

from typing import NoReturn

from duetime.errors import TransactionMisused, Unsupported
from duetime.model.outcome import Settlement


class NoLoan:
    """A transaction that cannot begin."""

    blocking = False
    expired = False

    def keeps_out(self, store: object) -> bool:  # noqa: ARG002 - it keeps out nobody
        """Never: there is none."""
        return False

    async def begin(self) -> NoReturn:
        """Refuse."""
        raise Unsupported("Redis has no transactions to lend to a handler; use a SQL store for that")

    async def complete(self, settlement: Settlement) -> NoReturn:  # noqa: ARG002 - refused
        """Refuse: it has not begun."""
        raise TransactionMisused("there is no transaction to commit")

    async def abandon(self, error: BaseException) -> NoReturn:
        """Refuse: it has not begun."""
        raise TransactionMisused("there is no transaction to roll back") from error
