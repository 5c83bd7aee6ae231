"""How asyncmy connects to a MariaDB or MySQL, and how statements are run there."""

from __future__ import annotations

import asyncio
import re
import selectors
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

import asyncmy
from asyncmy.constants.CLIENT import FOUND_ROWS
from asyncmy.cursors import Cursor

from duetime.errors import StoreError, StoreUnusable
from duetime.model.time import Instant
from duetime.stores.base.timeouts import DEFAULT_TIMEOUT, enable_keepalive
from duetime.stores.sql.driver import Query, Row, play_async
from duetime.stores.sql.mariadb.dialect import ON_MYSQL
from duetime.stores.sql.mariadb.errors import MariaDbErrors
from duetime.stores.sql.mariadb.password_guard import open_connection
from duetime.stores.sql.pool.connections import ConnectionUse, Connector
from duetime.stores.sql.pool.errors import DatabaseLabel
from duetime.stores.sql.statements.rewriting import steps_of
from duetime.stores.sql.transactions.caller import CHARSET, wrong_charset

# Making one takes an eighth of the time of the default.
_Selector: type[selectors.BaseSelector] = getattr(selectors, "PollSelector", selectors.SelectSelector)
_LARGE_STATEMENT = 2**18
"""From how many letters on it is worth a question whether the server takes so much: less always fits in a megabyte."""
_PLAIN_BACKSLASHES = 512
"""Is in the server's status when a backslash stands for itself."""
_STATEMENT_TIMEOUT = 35.0
"""How long a statement of ours may take, in seconds: longer than the server lets it, so that the connection survives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerVariant:
    """One of the servers that a driver speaks to."""

    version: str
    """A pattern that finds the first two numbers of its version in its greeting, and in no other server's."""
    oldest: tuple[int, int]
    """The first version that can be used."""
    settings: str
    """What is set on each connection, separated by semicolons."""
    bounds: str
    """Sets how long a transaction may be idle, in seconds."""
    spelling: tuple[str, str] | None = None
    """A word of ours, and what it is called here."""
    carries_hints: bool = True
    """Whether a statement can wait there for what other processes say."""


# Claims come as one long text.
_SETTINGS: Final = """SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin, time_zone = '+00:00', sql_notes = 0, group_concat_max_len = 1073741824,
sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout = 4,
"""
# SKIP LOCKED and JSON_TABLE.
_VARIANTS: Final = {
    "MariaDB": ServerVariant(
        version=r"(\d+)\.(\d+)\.\d+-MariaDB",
        oldest=(10, 6),
        settings=f"{_SETTINGS} max_statement_time = 30, idle_transaction_timeout = 10",
        bounds="SET idle_transaction_timeout = {}",
    ),
    "MySQL": ServerVariant(
        version=r"^(\d+)\.(\d+)\.(?!.*-MariaDB)",
        oldest=(8, 0),
        settings=f"{_SETTINGS} max_execution_time = 30000",
        bounds="SET wait_timeout = {}",
        spelling=ON_MYSQL,
        carries_hints=False,
    ),
}


class MariaDbConnection:
    """A connection as pools and scripts use it."""

    def __init__(self, raw: Any, *, ours: bool) -> None:
        """`ours` is False for a caller's connection."""
        self.raw = raw
        self.variant = _variant_of(str(raw.get_server_info()))
        self.ours = ours
        self.closed_by_hand = False
        """Whether the handler to whom it was lent has closed it."""

    def is_closed(self) -> bool:
        """Whether it was closed, by us or by the server."""
        raw = self.raw
        return not raw.connected or bool(raw._stream_broken) or _has_unread_data(raw._transport)  # noqa: SLF001 -- no public name says it

    def is_in_transaction(self) -> bool:
        """Whether a transaction is open, or the next statement begins one."""
        return bool(self.raw.get_transaction_status()) or not self.raw.get_autocommit()

    def terminate(self) -> None:
        """Close it at once."""
        self.raw.close()

    def watched(self) -> object:
        """Return the driver's connection, so that it is known from now on who has closed it."""
        raw = self.raw
        # The driver closes what the server has left by the same name, but only once that is seen.
        for name in ("close", "ensure_closed"):
            setattr(raw, name, partial(self._closed_by, getattr(raw, name)))
        return cast("object", raw)

    def _closed_by(self, close: Callable[[], Any]) -> Any:
        self.closed_by_hand = self.closed_by_hand or not self.is_closed()
        return close()

    async def close(self, *, timeout: float | None = None) -> None:
        """Close it in order."""
        async with asyncio.timeout(timeout):
            await self.raw.ensure_closed()

    async def execute(self, query: str, /) -> None:
        """Run a text that answers nothing."""
        before = _cancellations()
        async with asyncio.timeout(self._bound()):
            await self.raw.query(self._spelled(query))
            _raise_if_cancelled(before)

    async def fetch(
        self, query: str, values: Mapping[str, object], /, *, within: float | None = None
    ) -> list[Row]:
        """Run a statement; one that returns no rows answers how many it has found, and the last id."""
        named = {"ours": self.ours, **values}
        text = self._spelled(query) % {name: self._literal(value) for name, value in named.items()}
        cursor = self.raw.cursor(Cursor)
        before = _cancellations()
        async with asyncio.timeout(self._bound(within)):
            if len(text) > _LARGE_STATEMENT:
                await self._check_size(text)
            await cursor.execute(text)
            _raise_if_cancelled(before)
        if cursor.description is None:
            return [(cursor.rowcount, cursor.lastrowid)]
        return list(await cursor.fetchall())

    def _bound(self, within: float | None = None) -> float | None:
        """Return how long a statement may take; on a caller's connection that is for the caller to say."""
        return _STATEMENT_TIMEOUT if within is None and self.ours else within

    def _literal(self, value: object) -> str:
        if not isinstance(value, str):
            return str(self.raw.literal(value))
        # The driver goes letter by letter, which stops the event loop for a tenth of a second per megabyte.
        if not self.raw.server_status & _PLAIN_BACKSLASHES:
            value = value.replace("\\", "\\\\")
        return "'" + value.replace("'", "''") + "'"

    async def _check_size(self, text: str) -> None:
        """Refuse what the server would answer by closing the connection, which looks like a failure of the network."""
        cursor = self.raw.cursor(Cursor)
        await cursor.execute("SELECT @@max_allowed_packet")
        [(most,)] = await cursor.fetchall()
        if (size := len(text.encode())) >= most:
            raise StoreError(
                f"a statement of {size} bytes is larger than the server's max_allowed_packet ({most}); "
                "raise it there, or send less at once"
            )

    def _spelled(self, query: str) -> str:
        return query.replace(*self.variant.spelling) if self.variant.spelling else query


class MariaDbConnector(Connector[MariaDbConnection]):
    """Makes connections to one database."""

    # Locks are for gaps, too, so that verbs collide also where they want neighbouring rows.
    most_tries = 20
    accepted = "an asyncmy connection"
    sqlalchemy_name = "mysql"
    how_to_begin = "begin one: await connection.begin()"
    announces = False

    def __init__(self, url: str, *, timeout: float = DEFAULT_TIMEOUT, **options: Any) -> None:
        """Take the URL, for messages, and what the driver is given."""
        super().__init__(MariaDbErrors(DatabaseLabel.of(url, "MariaDB")), timeout=timeout)
        self._options = options

    async def _connect(self, use: ConnectionUse) -> MariaDbConnection:
        del use
        before = _cancellations()
        raw = await open_connection(autocommit=True, client_flag=FOUND_ROWS, **self._options)
        try:
            _raise_if_cancelled(before)
            enable_keepalive(raw)
            connection = MariaDbConnection(raw, ours=True)
            for text in connection.variant.settings.split(";"):
                await connection.execute(text)
        except BaseException:
            raw.close()
            raise
        return connection

    async def ask(
        self, connection: MariaDbConnection, query: Query, now: Instant | None, within: float | None
    ) -> list[Row]:
        """Run a statement within a time, at a moment of our own clock if there is one."""
        return await play_async(
            steps_of(query, within=connection.is_in_transaction()),
            lambda step: connection.fetch(step.statement.sql, {"now": now, **step.params}, within=within),
        )

    def taken(self, tx: object) -> MariaDbConnection | None:
        """Return a caller's connection as we use it; None if it is not one."""
        if not isinstance(tx, asyncmy.Connection):
            return None
        connection: Any = tx
        if (charset := connection.character_set_name()) != CHARSET:
            raise wrong_charset(charset)
        return MariaDbConnection(connection, ours=False)


def _variant_of(greeting: str) -> ServerVariant:
    for variant in _VARIANTS.values():
        found = re.search(variant.version, greeting)
        if found and (int(found[1]), int(found[2])) >= variant.oldest:
            return variant
    known = " or ".join(f"{name} {each.oldest[0]}.{each.oldest[1]}" for name, each in _VARIANTS.items())
    raise StoreUnusable(f"the server says it is {greeting}; use {known}, or a later one")


def _cancellations() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task else 0


def _raise_if_cancelled(before: int) -> None:
    """End the task if it was to end meanwhile: the driver loses a cancellation that comes together with an answer."""
    if _cancellations() > before:
        raise asyncio.CancelledError


def _has_unread_data(transport: asyncio.Transport | None) -> bool:
    """Whether the server has said something unasked: that it goes, though the event loop has not come to read it yet."""
    if transport is None:
        return True
    with _Selector() as selector:
        selector.register(transport.get_extra_info("socket"), selectors.EVENT_READ)
        return bool(selector.select(0))
