from __future__ import annotations

import ssl

import asyncpg
import pytest

from duetime.errors import (
    ConfigError,
    DuetimeError,
    NotOpen,
    SchemaMismatch,
    StoreError,
    StoreUnavailable,
    StoreUnusable,
)
from duetime.stores.sql.driver import AlreadyStored
from duetime.stores.sql.pool.errors import DatabaseLabel
from duetime.stores.sql.postgres.errors import PostgresErrors

ERRORS = PostgresErrors(DatabaseLabel.of("postgresql://ann:s3cret@db.example:5432/jobs"))


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (asyncpg.InvalidPasswordError("no s3cret"), StoreUnusable, "ann may not log in at db.example:5432"),
        (asyncpg.InvalidAuthorizationSpecificationError("no"), StoreUnusable, "check the user"),
        (asyncpg.InvalidCatalogNameError("no"), StoreUnusable, 'there is no database "jobs"'),
        (asyncpg.InsufficientPrivilegeError("no"), StoreUnusable, "grant ann"),
        (asyncpg.UndefinedTableError("no"), SchemaMismatch, "duetime migrate"),
        (asyncpg.ReadOnlySQLTransactionError("no"), StoreUnavailable, "read-only"),
        (asyncpg.DiskFullError("no"), StoreUnavailable, "disk of PostgreSQL at db.example:5432 is full"),
        (asyncpg.TooManyConnectionsError("no"), StoreUnavailable, "no connection left"),
        (asyncpg.AdminShutdownError("no"), StoreUnavailable, "stopping or starting"),
        (asyncpg.CrashShutdownError("no"), StoreUnavailable, "stopping or starting"),
        (asyncpg.CannotConnectNowError("no"), StoreUnavailable, "stopping or starting"),
        (asyncpg.QueryCanceledError("no"), StoreUnavailable, "took too long"),
        (asyncpg.ConnectionDoesNotExistError("no"), StoreUnavailable, "lost"),
        (asyncpg.LockNotAvailableError("no"), StoreUnavailable, "lock"),
        (asyncpg.DeadlockDetectedError("no"), StoreUnavailable, "too many others"),
        (asyncpg.UniqueViolationError("no"), AlreadyStored, "no"),
        (asyncpg.CheckViolationError("no"), StoreError, "23514"),
        (asyncpg.ClientConfigurationError("bad s3cret"), ConfigError, "cannot be used"),
        (asyncpg.InterfaceError("no"), StoreError, "no"),
        (ConnectionRefusedError("no"), StoreUnavailable, "cannot be reached"),
        (TimeoutError(), StoreUnavailable, "in time"),
        (ssl.SSLCertVerificationError("self-signed"), StoreUnusable, "?sslrootcert=ca.pem"),
        (ssl.SSLError("wrong version number"), StoreUnavailable, "by TLS"),
        (ConnectionError('the server at "db" rejected SSL upgrade'), StoreUnusable, "set ssl = on"),
    ],
)
def test_each_error_says_what_and_where_and_never_the_password(
    error: Exception, kind: type[DuetimeError], says: str
) -> None:
    translated = ERRORS.translate(error)
    assert type(translated) is kind
    assert says in str(translated)
    assert "s3cret" not in str(translated)


@pytest.mark.parametrize("error", [ZeroDivisionError(), NotOpen(), StoreUnavailable()])
def test_what_is_not_the_databases_stays_as_it_is(error: Exception) -> None:
    assert ERRORS.translate(error) is error


@pytest.mark.parametrize(
    ("error", "conflict", "lost", "spared"),
    [
        (asyncpg.SerializationError("no"), True, False, True),
        (asyncpg.DeadlockDetectedError("no"), True, False, True),
        (asyncpg.LockNotAvailableError("no"), True, False, True),
        (asyncpg.UniqueViolationError("no"), False, False, True),
        (asyncpg.AdminShutdownError("no"), False, True, False),
        (asyncpg.ConnectionDoesNotExistError("no"), False, True, False),
        (asyncpg.ReadOnlySQLTransactionError("no"), False, False, False),
        (ConnectionResetError("no"), False, True, False),
        (asyncpg.InternalClientError("no"), False, True, False),
        (TimeoutError(), False, False, False),
        (ZeroDivisionError(), False, False, False),
    ],
)
def test_what_an_error_means_for_the_script_and_the_connection(
    error: Exception, conflict: bool, lost: bool, spared: bool
) -> None:
    found = (ERRORS.is_conflict(error), ERRORS.is_lost(error), ERRORS.spares_connection(error))
    assert found == (conflict, lost, spared)


@pytest.mark.parametrize(
    ("url", "user", "host", "database"),
    [
        ("postgresql://", "the user", "the local server", ""),
        ("postgresql://a%40b@h/d%20b", "a@b", "h", "d b"),
        ("postgresql://ann@h", "ann", "h", "ann"),
        ("postgresql:///jobs?host=/run/pg&user=ann", "ann", "/run/pg", "jobs"),
    ],
)
def test_a_place_is_read_from_the_url_as_far_as_it_goes(
    url: str, user: str, host: str, database: str
) -> None:
    place = DatabaseLabel.of(url)
    assert (place.user, place.host, place.database) == (user, host, database)


@pytest.mark.parametrize(
    ("error", "never"),
    [
        (asyncpg.InterfaceError("connection is closed"), True),
        (asyncpg.InterfaceError("another operation is in progress"), False),
        (asyncpg.InternalClientError("cannot switch to state 15; another operation is in progress"), True),
        (asyncpg.InternalClientError("unknown error in protocol implementation"), False),
        (asyncpg.ConnectionDoesNotExistError("closed in the middle of operation"), False),
        (ConnectionResetError("no"), False),
    ],
)
def test_only_what_surely_was_not_sent_counts_as_such(error: Exception, never: bool) -> None:
    assert ERRORS.was_never_sent(error) is never
