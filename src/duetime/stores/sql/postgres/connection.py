"""Opens connections, finds out whether they are sessions of the server or of a pooler's, and runs scripts on them."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from duetime.errors import InvalidTransaction, StoreUnusable
from duetime.model.time import Instant
from duetime.stores.base.timeouts import CONNECT_TIMEOUT, DEFAULT_TIMEOUT, enable_keepalive
from duetime.stores.sql.driver import Query
from duetime.stores.sql.pool.connections import ConnectionUse, Connector
from duetime.stores.sql.pool.errors import DatabaseLabel, PasswordAsked
from duetime.stores.sql.postgres.errors import PostgresErrors
from duetime.stores.sql.postgres.password_guard import PasswordGuardLoop
from duetime.stores.sql.transactions.caller import CONNECTION_GONE

if TYPE_CHECKING:
    _DriverConnection = asyncpg.Connection[asyncpg.Record]
else:
    _DriverConnection = asyncpg.Connection

T = TypeVar("T")
PostgresConnection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

Pooler: TypeAlias = Literal["auto", "none", "transaction"]

OLDEST_VERSION: Final = 12
"""The first version that we know to work."""
STATEMENT_TIMEOUT: Final = 30
"""In seconds."""
# Above the server's own, so that the server is the first to give up and the connection survives.
_COMMAND_TIMEOUT: Final = STATEMENT_TIMEOUT + 5.0
_CACHED_STATEMENTS: Final = 200
_PLANS_LAST: Final = 60
"""In seconds. A plan that was made while a table was empty reads all of it; statistics may take minutes to undo it."""

_READ_SIZE: Final = 64 * 1024
"""Bytes read at once."""

_TIMEOUTS: Final = {
    "lock_timeout": "4s",
    "statement_timeout": f"{STATEMENT_TIMEOUT}s",
    "idle_in_transaction_session_timeout": "10s",
    # Our statements are short; compiling them takes longer than running them.
    "jit": "off",
}
_SESSION: Final = {
    **_TIMEOUTS,
    "default_transaction_isolation": "read committed",
    "application_name": "duetime",
    "client_min_messages": "warning",
    # The server ends the session, and with it the locks, of a host that is gone without a word.
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
_OWN_SESSION: Final = {
    **_SESSION,
    # Each of our statements has its index. A plan that was made while a table was empty would do without.
    "enable_seqscan": "off",
}
_SETTINGS: Final[Mapping[ConnectionUse, Mapping[str, str]]] = {
    "verbs": _OWN_SESSION,
    # It is for the statements of others, too.
    "handlers": _SESSION,
    # Heartbeats go over it: for one statement in ten seconds, to plan it takes longer than to run it.
    "sibling": {**_OWN_SESSION, "plan_cache_mode": "force_generic_plan"},
}


class LendableConnection(_DriverConnection):
    """Remembers what the handler has done to it that it does not show."""

    closed_by_hand = False
    """It looks like a lost connection otherwise."""
    altered = False
    """Whether it reads or writes values in another way now, which cannot be undone."""

    async def close(self, *, timeout: float | None = None) -> None:
        """Close it."""
        self.closed_by_hand = True
        await super().close(timeout=timeout)

    def terminate(self) -> None:
        """Close it at once."""
        self.closed_by_hand = True
        super().terminate()

    async def set_type_codec(self, *args: Any, **options: Any) -> None:
        """Change how values of a type are read and written."""
        self.altered = True
        await super().set_type_codec(*args, **options)

    async def set_builtin_type_codec(self, *args: Any, **options: Any) -> None:
        """Change it to a way that is built in."""
        self.altered = True
        await super().set_builtin_type_codec(*args, **options)

    def get_reset_query(self) -> str:
        """Return what undoes all that outlives a transaction."""
        return f"{super().get_reset_query()} RESET SESSION AUTHORIZATION; DISCARD TEMP; DISCARD SEQUENCES"


class PostgresConnector(Connector[PostgresConnection]):
    """Makes connections to one database.

    Behind a pooler in transaction mode a connection has no session of its own: settings, prepared statements and
    LISTEN would belong to the next client. Unless told, we find out by asking the server for its process id,
    which differs from the one that a pooler gives its clients.
    """

    most_tries = 5
    accepted = "an asyncpg connection"
    sqlalchemy_name = "postgresql"
    how_to_begin = "use it inside `async with connection.transaction():`"
    announces = True

    def __init__(self, dsn: str, *, pooler: Pooler = "auto", timeout: float = DEFAULT_TIMEOUT) -> None:
        super().__init__(PostgresErrors(DatabaseLabel.of(dsn)), timeout=timeout)
        self._dsn = dsn
        self._certain = pooler != "auto"
        self.pooled = pooler == "transaction"
        """Whether there is a pooler in between; unless told, certain after the first connection."""

    @property
    def begin(self) -> str:
        """The text that begins a transaction of ours, in one round trip, whatever the session was left with."""
        return f"BEGIN ISOLATION LEVEL READ COMMITTED; {self.local_bounds}" if self.pooled else "BEGIN"

    @property
    def local_bounds(self) -> str:
        """The text, perhaps empty, that bounds a transaction where the session cannot be trusted with it."""
        if not self.pooled:
            return ""
        return "".join(f"SET LOCAL {name} = '{value}'; " for name, value in _TIMEOUTS.items())

    async def _connect(self, use: ConnectionUse) -> PostgresConnection:
        kind: type[PostgresConnection] = LendableConnection if use == "handlers" else asyncpg.Connection
        connection = await self._open(kind)
        if self.pooled:
            return connection
        try:
            ours = await self._prepare(connection, _SETTINGS[use])
        except BaseException:
            connection.terminate()
            raise
        if ours:
            return connection
        # This connection caches prepared statements, so it must not run a single one.
        connection.terminate()
        self.pooled = True
        return await self._open(kind)

    def taken(self, tx: object) -> PostgresConnection | None:
        """Return a caller's connection, also where a pool has handed it out; None if it is not one."""
        given: Any = tx
        if isinstance(tx, PoolConnectionProxy):
            # It loses its connection when it is given back.
            inner: PostgresConnection | None = getattr(given, "_con", None)
            if inner is None:
                raise InvalidTransaction(CONNECTION_GONE)
            return inner
        return given if isinstance(tx, asyncpg.Connection) else None

    def ask(
        self, connection: PostgresConnection, query: Query, now: Instant | None, within: float | None
    ) -> Awaitable[list[Any]]:
        """Run a statement within a time, at a moment of our own clock if there is one."""
        statement, params = query
        values = [now if name == "now" else params[name] for name in statement.params]
        return connection.fetch(statement.sql, *values, timeout=within)

    async def clean(self, connection: PostgresConnection) -> bool:
        """Undo what a handler has left; a pooler's session is not ours to clean, and gets no settings at all."""
        if not isinstance(connection, LendableConnection):
            # The only one of a sibling, which would lose settings of its own.
            return True
        if connection.altered:
            return False
        try:
            if not self.pooled:
                await connection.reset(timeout=CONNECT_TIMEOUT)
                await self._prepare(connection, _SESSION)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            return False
        return True

    async def _open(self, kind: type[PostgresConnection]) -> PostgresConnection:
        # Settings are not passed at the start of a connection: poolers refuse those they do not know.
        loop: Any = PasswordGuardLoop()
        try:
            connection = await asyncpg.connect(
                self._dsn,
                loop=loop,
                connection_class=kind,
                timeout=CONNECT_TIMEOUT,
                command_timeout=_COMMAND_TIMEOUT,
                statement_cache_size=0 if self.pooled else _CACHED_STATEMENTS,
                max_cached_statement_lifetime=_PLANS_LAST,
                max_cacheable_statement_size=0,
            )
        except Exception as error:
            if loop.refused:
                raise PasswordAsked from error
            raise
        loop.release(connection)
        _read_in_small_pieces(connection)
        enable_keepalive(connection)
        version = connection.get_server_version()
        if version.major < OLDEST_VERSION:
            connection.terminate()
            raise StoreUnusable(
                f"{self.errors.place} has version {version.major}.{version.minor}; upgrade it to {OLDEST_VERSION} or later"
            )
        return connection

    async def _prepare(self, connection: PostgresConnection, wanted: Mapping[str, str]) -> bool:
        """Set up the session and return True, if it is the server's; touch nothing if it is a pooler's."""
        condition = "true" if self._certain else f"pg_backend_pid() = {connection.get_server_pid()}"
        settings = ", ".join(f"('{name}', '{value}')" for name, value in wanted.items())
        # A plain query without parameters leaves no prepared statement behind at a pooler's server.
        done = await connection.execute(
            f"SELECT set_config(name, value, false) FROM (VALUES {settings}) AS s (name, value) WHERE {condition}"  # noqa: S608 -- all of it is ours
        )
        return done != "SELECT 0"


def _read_in_small_pieces(connection: PostgresConnection) -> None:
    """Have answers read into memory that is at hand.

    For each answer, however short, the event loop asks for as much memory as it would read at once, and for a quarter of a
    megabyte the allocator asks the system, which takes longer than to read it. Transports that read in another way have no
    such size.
    """
    transport = getattr(connection, "_transport", None)
    if getattr(transport, "max_size", 0) > _READ_SIZE:
        transport.max_size = _READ_SIZE  # type: ignore[union-attr]
