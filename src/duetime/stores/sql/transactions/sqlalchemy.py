"""Transactions that SQLAlchemy manages, of callers and of handlers; it is imported only for objects that are its own."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar, cast

from sqlalchemy import BigInteger, Connection, Engine, Text, TwoPhaseTransaction, bindparam, select, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.orm import Session, scoped_session

from duetime.errors import InvalidTransaction, StoreError, StoreUnavailable
from duetime.failpoints import failpoint
from duetime.model.ids import new_token
from duetime.model.time import SECOND, Clock, Micros
from duetime.stores.sql.driver import CallerTransaction, Query, Row, ScriptMaker, play
from duetime.stores.sql.mariadb.dialect import ON_MYSQL
from duetime.stores.sql.sqlite.connection import by_row
from duetime.stores.sql.sqlite.errors import has_moved_on, is_busy, misses_table
from duetime.stores.sql.sqlite.transactions import BECOME_WRITER, snapshot_too_old
from duetime.stores.sql.statements.rewriting import unfold
from duetime.stores.sql.transactions import caller

T = TypeVar("T")

_AUTOCOMMITS: Final = "the engine commits every statement by itself; use one without AUTOCOMMIT"
_NUMBERED: Final = re.compile(r"\$(\d+)")
_MEANINGS: Final[Mapping[object, str]] = {
    "25P01": str(caller.no_transaction(_AUTOCOMMITS)),
    "25P02": caller.ABORTED,
    **dict.fromkeys(("42P01", "42703", 1054, 1146), caller.ANOTHER_DATABASE),
}
"""What codes of PostgreSQL and MySQL mean; the last are for tables or columns that are not there."""
_WAITED_ON_MYSQL: Final = 1205
_ENDED_ON_MYSQL: Final = frozenset({1213, 1305})
"""A deadlock, behind which there is neither a transaction nor a savepoint any more."""
_FAMILY: Final = {"mariadb": "mysql"}
"""What SQLAlchemy calls by two names."""


def sqlalchemy_transaction(tx: object, *, dialect: str, clock: Clock | None) -> CallerTransaction:
    """Take a transaction of SQLAlchemy's; `dialect` is its name of the store's database."""
    if caller.comes_from("sqlalchemy.ext.asyncio", tx):
        # It cannot even be imported where only the blocking half is installed.
        from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session

        taken = _checked(tx, (AsyncSession, AsyncConnection), registry=async_scoped_session)
        return _AsyncSqlAlchemyTransaction(taken, dialect=dialect, clock=clock)
    taken = _checked(tx, (Session, Connection), registry=scoped_session)
    return _SqlAlchemyTransaction(taken, dialect=dialect, clock=clock)


class _SqlAlchemyTransaction:
    """Runs scripts through a Session or a Connection, in the thread of the caller."""

    def __init__(self, tx: Any, *, dialect: str, clock: Clock | None) -> None:
        self.tx = tx
        self._dialect = dialect
        self._clock = clock
        try:
            engine: Engine = _engine(tx)
        except SQLAlchemyError as error:
            raise InvalidTransaction(f"tx cannot be used: {error}") from error
        if _FAMILY.get(engine.dialect.name, engine.dialect.name) != dialect:
            raise InvalidTransaction(caller.ANOTHER_DATABASE)
        # PostgreSQL prepares no transaction with a notification in it.
        self.announces = not _in_two_phases(tx)

    async def run(self, script: ScriptMaker[T]) -> T:
        """Run a script inside the transaction."""
        return self.run_blocking(script)

    def run_blocking(self, script: ScriptMaker[T]) -> T:
        """Run a script inside the transaction."""
        return self.play(self.tx, script)

    def play(self, tx: Session | Connection, script: ScriptMaker[T]) -> T:
        """Run a script inside the transaction of the blocking session or connection."""
        now = self._clock.now() if self._clock else None
        execute = _EXECUTE[self._dialect]
        try:
            connection = _connection(tx)
            with _writing(connection), connection.begin_nested():
                # On MySQL a statement may be several.
                steps = unfold(script(), within=True) if self._dialect == "mysql" else script()
                return play(steps, lambda query: execute(connection, query, now))
        except DBAPIError as error:
            raise _translated(error) from error
        except SQLAlchemyError as error:
            raise InvalidTransaction(f"tx cannot be used: {error}") from error

    def lend(self, *, timeout: Micros) -> SqlAlchemyHandlerTransaction:
        """Let a handler complete its job in it."""
        return SqlAlchemyHandlerTransaction(self, timeout=timeout)


class _AsyncSqlAlchemyTransaction(_SqlAlchemyTransaction):
    """Runs scripts through an AsyncSession or an AsyncConnection."""

    async def run(self, script: ScriptMaker[T]) -> T:
        """Run a script inside the transaction."""
        try:
            answer: T = await self.tx.run_sync(self.play, script)
        except SQLAlchemyError as error:
            # Closed, or never begun.
            raise InvalidTransaction(f"tx cannot be used: {error}") from error
        return answer

    def run_blocking(self, script: ScriptMaker[T]) -> T:
        """Refuse: this connection lives in an event loop."""
        del script
        raise caller.needs_event_loop(self.tx)


class SqlAlchemyHandlerTransaction:
    """A session or connection of the handler's own, whose transaction is committed with the end of the job.

    A savepoint at its beginning tells whether the server still has the transaction that was begun.
    """

    def __init__(self, borrowed: _SqlAlchemyTransaction, *, timeout: Micros) -> None:
        self.blocking = not isinstance(borrowed, _AsyncSqlAlchemyTransaction)
        self.expired = False
        self._borrowed = borrowed
        self._deadline = time.monotonic() + timeout / SECOND
        self._mark = f"duetime_{new_token()}"
        self._begun: object = None
        self._thread = ThreadPoolExecutor(1, "duetime-session")
        """Where blocking ones are ended, so that the event loop goes on."""

    async def begin(self) -> object:
        """Begin, unless that has been done, and return what the handler has given."""

        def work(face: Any) -> None:
            self._begun = face.get_transaction() or face.begin()
            connection = _connection(face)
            with _writing(connection):
                connection.exec_driver_sql(f"SAVEPOINT {self._mark}")

        await self._do(work)
        return self._borrowed.tx

    async def is_whole(self) -> bool:
        """Whether the transaction is still the one that was begun; what the session has left to write is written."""
        self.expired = time.monotonic() > self._deadline

        def work(face: Any) -> bool:
            if isinstance(face, Session):
                face.flush()
            return self._at_mark(face, "RELEASE")

        return await self._do(work)

    async def run(self, script: ScriptMaker[T]) -> T:
        """Run a script inside the transaction."""
        return await self._do(partial(self._borrowed.play, script=script))

    async def commit(self) -> None:
        """Commit; to close it is left to the handler."""
        failpoint("before:transaction")
        await self._do(lambda face: face.commit())
        failpoint("after:transaction")

    async def rollback(self, cause: BaseException | None = None) -> bool:
        """Undo everything; False if the transaction had been ended before."""
        del cause

        def work(face: Any) -> bool:
            try:
                return self._at_mark(face, "ROLLBACK TO")
            except (SQLAlchemyError, StoreError):
                # A session whose flush has failed asks for nothing but this.
                return True
            finally:
                face.rollback()

        try:
            return await self._do(work)
        except (SQLAlchemyError, StoreError):
            # The server rolls back what is left of a connection that is gone.
            return True

    def _at_mark(self, face: Any, verb: str) -> bool:
        """Do something with the savepoint; False if the transaction that it stands in has been ended."""
        if face.get_transaction() is not self._begun:
            return False
        try:
            _connection(face).exec_driver_sql(f"{verb} SAVEPOINT {self._mark}")
        except DBAPIError as error:
            translated = _translated(error)
            if isinstance(translated, StoreUnavailable) or str(translated) == caller.ABORTED:
                raise translated from error
            return False
        return True

    async def _do(self, work: Callable[[Any], T]) -> T:
        """Work with the blocking session or connection, or with what is blocking behind an async one."""
        tx = self._borrowed.tx
        try:
            if not self.blocking:
                answer: T = await tx.run_sync(work)
                return answer
            return await asyncio.get_running_loop().run_in_executor(self._thread, work, tx)
        except DBAPIError as error:
            # Errors of the handler's own writes, which may be flushed only now, stay as they are.
            translated = _translated(error)
            if isinstance(translated, InvalidTransaction | StoreUnavailable):
                raise translated from error
            raise


def _connection(face: Session | Connection) -> Connection:
    return face.connection() if isinstance(face, Session) else face


def _checked(tx: Any, kinds: tuple[type, ...], *, registry: type[Any]) -> Any:
    """Return the transaction itself, also where a registry of sessions was given, or say what is expected."""
    if isinstance(tx, registry):
        return tx()
    if isinstance(tx, kinds):
        return tx
    raise InvalidTransaction(
        f"of SQLAlchemy, tx must be a {caller.SQLALCHEMY_KINDS}, not {type(tx).__name__}"
    )


def _face(tx: Any) -> Any:
    """Return the blocking session or connection that an async one is only a face of."""
    face = getattr(tx, "sync_session", tx)
    return getattr(face, "sync_connection", None) or face


def _engine(tx: Any) -> Any:
    """Return the engine of a session or connection."""
    face = _face(tx)
    return face.get_bind().engine if hasattr(face, "get_bind") else face.engine


def _in_two_phases(tx: Any) -> bool:
    face = _face(tx)
    if isinstance(face, Session):
        if face.twophase:
            return True
        face = face.get_bind()
    return isinstance(face, Connection) and isinstance(face.get_transaction(), TwoPhaseTransaction)


@contextmanager
def _writing(connection: Connection) -> Generator[None]:
    """Begin what SQLAlchemy leaves for SQLite's driver to begin, and undo that if it was in vain."""
    if connection.dialect.name != "sqlite":
        if connection.dialect.name in {"mariadb", "mysql"}:
            _check_mysql(connection)
        yield
        return
    driver: Any = connection.connection.driver_connection
    if driver.in_transaction:
        connection.exec_driver_sql(BECOME_WRITER)
        yield
        return
    if driver.isolation_level is None:
        raise caller.no_transaction(_AUTOCOMMITS)
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if driver.in_transaction:
            connection.exec_driver_sql("ROLLBACK")
        raise


def _check_mysql(connection: Connection) -> None:
    """Refuse where every statement is committed by itself, in which a savepoint is no error, and where letters lack."""
    found: Any = connection.execute(select(text("@@autocommit, @@character_set_client"))).one()
    commits_each, charset = found
    if commits_each:
        raise caller.no_transaction(_AUTOCOMMITS)
    if charset != caller.CHARSET:
        raise caller.wrong_charset(charset)


def _execute_sqlite(connection: Connection, query: Query, now: int | None) -> list[Row]:
    statement = query.statement
    values = {**query.params, "now": now}
    if not statement.columns:
        found = connection.exec_driver_sql(statement.sql, tuple(values[name] for name in statement.params))
        return list(found) if found.returns_rows else [(found.rowcount,)]
    batch: Sequence[Row] = query.params["rows"]  # type: ignore[assignment]  # such a statement gets rows
    values_with = by_row(statement, values)
    return [row for row in batch if connection.exec_driver_sql(statement.sql, values_with(row)).rowcount]


def _execute_postgres(connection: Connection, query: Query, now: int | None) -> list[Row]:
    """Run a statement in the words of whichever driver the engine has."""
    values = {**query.params, "now": now}
    bound = [
        bindparam(f"p{n}", values[name], type_=BigInteger() if isinstance(values[name], int) else Text())
        for n, name in enumerate(query.statement.params, 1)
    ]
    # In parentheses, because SQLAlchemy does not see a parameter with a cast right behind it.
    sql = _NUMBERED.sub(r"(:p\1)", query.statement.sql)
    found = connection.execute(text(sql).bindparams(*bound))
    return list(found) if found.returns_rows else []


def _execute_mysql(connection: Connection, query: Query, now: int | None) -> list[Row]:
    sql, dialect = query.statement.sql, cast("Any", connection.dialect)
    found = connection.exec_driver_sql(
        sql if dialect.is_mariadb else sql.replace(*ON_MYSQL), {"now": now, "ours": False, **query.params}
    )
    return list(found) if found.returns_rows else [(found.rowcount,)]


def _translated(error: Any) -> Exception:
    """Return the error to raise instead; the codes of one database mean nothing to another."""
    cause = error.orig
    # Some drivers put other things there.
    code = cause.args[0] if cause.args and isinstance(cause.args[0], int) else None
    if (meant := _MEANINGS.get(code) or _MEANINGS.get(getattr(cause, "sqlstate", None))) is not None:
        return InvalidTransaction(meant)
    if misses_table(cause):
        return InvalidTransaction(caller.ANOTHER_DATABASE)
    if has_moved_on(cause):
        return snapshot_too_old()
    if code in _ENDED_ON_MYSQL:
        return caller.rolled_back_by_server(cause)
    if code == _WAITED_ON_MYSQL or is_busy(cause):
        return StoreUnavailable(f"others have kept your transaction from writing for too long: {cause}")
    return (
        StoreUnavailable(f"the connection of your transaction was lost ({cause})")
        if error.connection_invalidated
        else StoreError(f"your transaction refused a statement: {cause}")
    )


_EXECUTE: Final = {"sqlite": _execute_sqlite, "postgresql": _execute_postgres, "mysql": _execute_mysql}
