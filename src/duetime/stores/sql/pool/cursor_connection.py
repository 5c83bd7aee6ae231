"""Connections of drivers that have cursors, as PEP 249 has them, in an event loop."""

from __future__ import annotations

import asyncio
import re
import selectors
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

from duetime.errors import StoreError, StoreUnusable
from duetime.model.time import SECOND, Clock, Micros
from duetime.stores.base.timeouts import CONNECT_TIMEOUT, ServerTimeouts, enable_keepalive
from duetime.stores.sql.driver import Row, Script
from duetime.stores.sql.pool.errors import DatabaseLabel, ErrorCodes, ErrorPredicates, ErrorTranslation
from duetime.stores.sql.statements.rewriting import unfold
from duetime.stores.sql.transactions.caller import CHARSET, wrong_charset

T = TypeVar("T")

# An eighth of what the default one takes to be made.
_Selector: type[selectors.BaseSelector] = getattr(selectors, "PollSelector", selectors.SelectSelector)
_LARGE_STATEMENT = 2**18
"""From how many letters on it is worth a question whether the server takes so much: less always fits in a megabyte."""
_PLAIN_BACKSLASHES = 512
"""Is in the server's status when a backslash stands for itself."""
_STATEMENT_TIMEOUT = 35.0
"""How long a statement of ours may take, in seconds: longer than the server lets it, so that the connection survives."""
_SERVER_GRACE = 5
"""How much later than we the server ends a transaction of a handler, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerVariant:
    """One of the servers that a driver speaks to."""

    version: str
    """What finds the first two numbers of its version in what it says of itself, and in no other's."""
    oldest: tuple[int, int]
    """The first version that will do."""
    settings: str
    """What is set on each connection, parted by semicolons."""
    bounds: str
    """Sets how long a transaction may be idle, in seconds."""
    spelling: tuple[str, str] | None = None
    """A word of ours, and what it is called here."""
    carries_hints: bool = True
    """Whether a statement can wait there for what other processes say."""


class CursorConnection:
    """A connection as pools and scripts use it."""

    __slots__ = ("_plain", "closed_by_hand", "kind", "ours", "raw")

    def __init__(self, raw: Any, kind: ServerVariant, plain: type[Any]) -> None:
        self.raw = raw
        self.kind = kind
        self._plain = plain
        self.closed_by_hand = False
        self.ours = False
        """Whether it is a connection of our own, not a caller's."""

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
        cursor = self.raw.cursor(self._plain)
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
            literal: str = self.raw.literal(value)
            return literal
        # The driver goes letter by letter, which stops the event loop for a tenth of a second per megabyte.
        if not self.raw.server_status & _PLAIN_BACKSLASHES:
            value = value.replace("\\", "\\\\")
        return "'" + value.replace("'", "''") + "'"

    async def _check_size(self, text: str) -> None:
        """Refuse what the server would answer by closing the connection, which looks like a failure of the network."""
        cursor = self.raw.cursor(self._plain)
        await cursor.execute("SELECT @@max_allowed_packet")
        [(most,)] = await cursor.fetchall()
        if (size := len(text.encode())) >= most:
            raise StoreError(
                f"a statement of {size} bytes is larger than the server's max_allowed_packet ({most}); "
                "raise it there, or send less at once"
            )

    def _spelled(self, query: str) -> str:
        return query.replace(*self.kind.spelling) if self.kind.spelling else query


@dataclass(frozen=True, kw_only=True)
class CursorConnector:
    """Makes connections to one database whose statements take steps."""

    open: Callable[[], Awaitable[Any]] = field(repr=False)
    owned: type[Any]
    """The driver's connections."""
    plain: type[Any]
    """Its cursors whose rows are tuples, whatever those of a caller's connection usually are."""
    accepts: str
    alchemy: str
    how: str
    place: DatabaseLabel
    codes: ErrorCodes
    most_tries: int
    kinds: Mapping[str, ServerVariant]
    """The servers that will do, by name."""
    patience: ServerTimeouts = field(default_factory=ServerTimeouts)
    announces: bool = False
    pooled: bool = False
    begin: str = "BEGIN"
    probe: str = "DO 1"

    @property
    def judge(self) -> ErrorPredicates:
        """What errors mean for what was being done."""
        return self.codes.judge

    def errors(self) -> ErrorTranslation:
        """Raise what the driver raises as our own errors."""
        return ErrorTranslation(self.place, self.codes.translate)

    async def connect(self) -> CursorConnection:
        """Return a connection that is ready for scripts; raise only our own errors."""
        with self.errors():
            async with asyncio.timeout(CONNECT_TIMEOUT):
                return await self._ready()

    async def _ready(self) -> CursorConnection:
        before = _cancellations()
        raw = await self.open()
        try:
            _raise_if_cancelled(before)
            enable_keepalive(raw)
            session = self._session(raw)
            session.ours = True
            for text in session.kind.settings.split(";"):
                await session.execute(text)
        except BaseException:
            raw.close()
            raise
        return session

    def transport(self, session: CursorConnection, /) -> Any:
        """Return what a connection is made of."""
        return session.raw._transport  # noqa: SLF001 -- no public name leads to it

    def _session(self, raw: Any) -> CursorConnection:
        told = str(raw.get_server_info())
        for kind in self.kinds.values():
            found = re.search(kind.version, told)
            if found and (int(found[1]), int(found[2])) >= kind.oldest:
                return CursorConnection(raw, kind, self.plain)
        known = " or ".join(f"{name} {kind.oldest[0]}.{kind.oldest[1]}" for name, kind in self.kinds.items())
        raise StoreUnusable(f"the server says it is {told}; use {known}, or a later one")

    async def play(
        self,
        session: CursorConnection,
        script: Script[T],
        clock: Clock | None,
        within: float | None = None,
        /,
    ) -> T:
        """Run a script to its end, each statement within a time; with a clock of our own, all of it at one moment."""
        now = clock.now() if clock else None
        steps = unfold(script, within=session.is_in_transaction())
        try:
            query = next(steps)
            while True:
                rows = await session.fetch(query.statement.sql, {"now": now, **query.params}, within=within)
                query = steps.send(rows)
        except StopIteration as stop:
            answer: T = stop.value
            return answer

    async def bound(self, session: CursorConnection, timeout: Micros, /) -> None:
        """Have the server end an idle transaction of a handler when we cannot, and not before."""
        await session.execute(session.kind.bounds.format(timeout // SECOND + _SERVER_GRACE))

    def taken(self, tx: object, /) -> CursorConnection | None:
        """Return a caller's connection as we use it; None for what is none."""
        if not isinstance(tx, self.owned):
            return None
        connection: Any = tx
        if (charset := connection.character_set_name()) != CHARSET:
            raise wrong_charset(charset)
        return self._session(connection)

    def was_closed_by_hand(self, session: CursorConnection, /) -> bool:
        """Whether the handler has closed the connection that it was lent."""
        return session.closed_by_hand

    def handed_out(self, session: CursorConnection, /) -> object:
        """Return what a handler gets of a connection, which remembers whether it was the handler who closed it."""
        return session.watched()

    def carries_hints(self, session: CursorConnection, /) -> bool:
        """Whether a statement can wait on that server for what other processes say."""
        return session.kind.carries_hints


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
