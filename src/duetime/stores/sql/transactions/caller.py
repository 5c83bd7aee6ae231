"""What callers may give as `tx=`, and the errors for what they may not."""

from __future__ import annotations

from typing import Final

from duetime.errors import InvalidTransaction
from duetime.model.time import Clock
from duetime.stores.sql.driver import CallerTransaction

SAVEPOINT: Final = "duetime_enqueue"
"""Stands before what is stored in a caller's transaction, so that a request that fails leaves nothing there."""

SQLALCHEMY_KINDS: Final = "Session, Connection, AsyncSession or AsyncConnection"
CONNECTION_GONE: Final = "tx is closed, or was given back to its pool"
ABORTED: Final = "a statement of tx has failed before, so it cannot be committed; roll it back"
ANOTHER_DATABASE: Final = (
    "tx is a transaction of another database than the scheduler's; open it on the database, and with the schema "
    "search path, that the scheduler's URL names"
)
CHARSET: Final = "utf8mb4"
"""The charset of MySQL that has every letter."""


def take_sqlalchemy(tx: object, *, dialect: str, clock: Clock | None, native: str) -> CallerTransaction:
    """Take a transaction of SQLAlchemy's, or raise `InvalidTransaction`.

    `dialect` is its name of the store's database, `native` what else callers may give.
    """
    if not comes_from("sqlalchemy", tx):
        raise InvalidTransaction(
            f"tx must be {native}, or a SQLAlchemy {SQLALCHEMY_KINDS}, to the store's own database, "
            f"not {type(tx).__name__}"
        )
    # Here, because SQLAlchemy may not be installed.
    from duetime.stores.sql.transactions.sqlalchemy import sqlalchemy_transaction

    return sqlalchemy_transaction(tx, dialect=dialect, clock=clock)


def comes_from(package: str, tx: object) -> bool:
    """Whether the class of an object, or one that it is derived from, is a package's."""
    return any(f"{kind.__module__}.".startswith(f"{package}.") for kind in type(tx).__mro__)


def no_transaction(how: str) -> InvalidTransaction:
    """Return the error for a connection on which every statement would be committed by itself."""
    return InvalidTransaction(f"tx has no transaction open; {how}")


def wrong_charset(found: str) -> InvalidTransaction:
    """Return the error for a connection whose charset lacks letters that arguments may have."""
    return InvalidTransaction(f"tx speaks {found}, which lacks letters; connect with charset={CHARSET}")


def rolled_back_by_server(error: BaseException) -> InvalidTransaction:
    """Return the error for a transaction of which the server has left nothing, not even what came before."""
    return InvalidTransaction(f"the server has rolled back all of tx ({error}); begin it again")


def not_alchemy(tx: object) -> InvalidTransaction:
    """Return the error for a connection of the driver's in which a handler wants to complete its job."""
    return InvalidTransaction(
        f"transaction() takes a SQLAlchemy {SQLALCHEMY_KINDS}, not {type(tx).__name__}; without tx= it lends a "
        "connection of that kind"
    )


def needs_event_loop(tx: object) -> InvalidTransaction:
    """Return the error for an async connection in a blocking call."""
    return InvalidTransaction(
        f"tx is {type(tx).__name__}, which works only in its event loop; "
        "await task.options(tx=...).enqueue(...) instead of .sync"
    )
