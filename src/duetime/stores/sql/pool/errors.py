"""What errors of a database on a network mean, and how they are told."""

from __future__ import annotations

import ssl
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, NamedTuple, Self

from duetime.errors import (
    DuetimeError,
    InvalidTransaction,
    KeyTaken,
    SchemaMismatch,
    StoreError,
    StoreUnavailable,
    StoreUnusable,
)
from duetime.failpoints import InjectedFault
from duetime.model.urls import parse_url
from duetime.stores.sql.driver import AlreadyStored, ScriptUndone
from duetime.stores.sql.transactions import caller


class DatabaseLabel(NamedTuple):
    """A database as messages name it, never with its password."""

    user: str
    host: str
    database: str
    password: str
    kind: str = "PostgreSQL"

    @classmethod
    def of(cls, dsn: str, kind: str = "PostgreSQL") -> DatabaseLabel:
        """Read a URL; what it leaves out, the driver takes from the environment."""
        url = parse_url(dsn)
        host = ",".join(map(str, url.hosts)) or url.options.get("host") or "the local server"
        user = url.user or url.options.get("user") or "the user"
        return cls(user, host, url.path.lstrip("/") or url.user or "", url.password or "", kind)

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        return f"{self.kind} at {self.host}"

    @property
    def authority(self) -> str:
        """The option of the URL that says whose certificates to trust."""
        return _AUTHORITY_OPTIONS[self.kind]

    def say(self, error: BaseException) -> str:
        """Return an error's text without our password, should it be in there."""
        text = str(error) or type(error).__name__
        return text.replace(self.password, "***") if self.password else text


class PasswordAsked(Exception):
    """A server wants the password itself, on a connection by which it must not be sent."""


class StaleConnection(ConnectionError):
    """A connection was found lost before anything was sent that could have had an effect."""


class ErrorMeaning(NamedTuple):
    """An error of ours, and how it is told."""

    kind: type[DuetimeError]
    text: str

    def told(self, error: BaseException, place: DatabaseLabel, *, code: str | None) -> DuetimeError:
        """Return the error to raise."""
        names = {"user": place.user, "host": place.host, "database": place.database, "place": place}
        said = place.say(error)
        return self.kind(self.text.format(error=said, code=code, option=place.authority, **names))


def unusable(text: str) -> ErrorMeaning:
    """Tell of what only a change of the settings can mend."""
    return ErrorMeaning(StoreUnusable, text)


def unavailable(text: str) -> ErrorMeaning:
    """Tell of what may be over at the next try."""
    return ErrorMeaning(StoreUnavailable, text)


_AUTHORITY_OPTIONS: Final = {"PostgreSQL": "sslrootcert", "MariaDB": "ssl_ca"}
NETWORK_ERRORS: Final[Mapping[type[Exception], ErrorMeaning]] = {
    InjectedFault: unavailable("{error}"),
    PasswordAsked: unusable(
        "{place} asks for the password in clear, without TLS, and did not get it; set up TLS there, and add ?{option}=ca.pem"
    ),
    ssl.SSLCertVerificationError: unusable(
        "{place} shows a certificate that is not trusted here ({error}); name who signed it: ?{option}=ca.pem"
    ),
    ssl.SSLError: unavailable(
        "{place} cannot be reached by TLS: {error}; check that it speaks TLS at this port"
    ),
    TimeoutError: unavailable("{place} did not answer in time; see whether it is busy or cut off"),
    OSError: unavailable(
        "{place} cannot be reached: {error}; check that it runs, and host and port in the URL"
    ),
}
LOGIN_REFUSED: Final = unusable(
    "{user} may not log in at {host} ({error}); check the user and password in the URL"
)
NO_TLS: Final = unusable("the connection to {place} cannot be encrypted ({error}); check ?ssl_ca= in the URL")
NO_DATABASE: Final = unusable(
    'there is no database "{database}" at {host} ({error}); create it: CREATE DATABASE {database}'
)
NO_RIGHTS: Final = unusable('{error}; grant {user} the rights on the tables in "{database}"')
NO_TABLE: Final = ErrorMeaning(SchemaMismatch, "{error}; run `duetime migrate`")
STATEMENT_LOG: Final = unusable(
    "{place} logs statements, which cannot be done for transactions as ours ({error}); set binlog_format to ROW"
)
# Unavailable rather than unusable: after a failover the next connection may reach the new primary.
READ_ONLY: Final = unavailable("{place} is read-only at present ({error}); connect to the primary")
DISK_FULL: Final = unavailable("the disk of {place} is full ({error}); free some space there")
TOO_MANY_CONNECTIONS: Final = unavailable(
    "{place} has no connection left for us ({error}); raise its max_connections or lower ?pool="
)
TIMED_OUT: Final = unavailable("{place} took too long and was stopped ({error}); see what it waits for")
CONNECTION_LOST: Final = unavailable("the connection to {place} was lost ({error}); try again")
NEVER_SENT: Final = unavailable("the connection to {place} was gone ({error}); try again")
CONFLICT: Final = unavailable("too many others change the same rows at once ({error}); try again")
TOO_LARGE: Final = ErrorMeaning(
    StoreError,
    "{place} takes no statement so large ({error}); raise its max_allowed_packet, or send less at once",
)
DUPLICATE_KEY: Final = ErrorMeaning(AlreadyStored, "{error}")
# The transaction that had it was ended.
NO_SAVEPOINT: Final = ErrorMeaning(StoreError, "{error}")
REFUSED: Final = ErrorMeaning(StoreError, "{place} refused a statement: {error} (code {code})")
# A statement of the transaction had failed before, so that it can only be rolled back.
ABORTED: Final = ErrorMeaning(InvalidTransaction, caller.ABORTED)
STOPPING: Final = unavailable("{place} is stopping or starting ({error}); wait for it")


class DatabaseErrors(ABC):
    """What the errors of a driver mean; as a context, raises our own errors in their place.

    It has no state, because every verb enters it.
    """

    meanings: ClassVar[Mapping[str, ErrorMeaning]]
    """What codes mean that begin with a text; the first that fits counts."""
    by_type: ClassVar[Mapping[type[Exception], ErrorMeaning]] = NETWORK_ERRORS
    """What errors without a code mean; the narrower come first."""
    conflicts: ClassVar[Sequence[ErrorMeaning]]
    """After which the whole script can be run again, because its transaction was undone."""

    def __init__(self, place: DatabaseLabel) -> None:
        self.place = place

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, Exception) and (translated := self.translate(error)) is not error:
            raise translated from error

    @abstractmethod
    def code(self, error: BaseException) -> str | None:
        """Return the database's code of an error; None if the error is not the database's."""

    def meaning(self, error: BaseException) -> ErrorMeaning | None:
        """Return what an error means; None if it is of something else."""
        code = self.code(error)
        if code is None:
            return next((meaning for kind, meaning in self.by_type.items() if isinstance(error, kind)), None)
        return next(
            (meaning for prefix, meaning in self.meanings.items() if code.startswith(prefix)), REFUSED
        )

    def is_conflict(self, error: BaseException) -> bool:
        """Whether the whole script can be run again."""
        return self.meaning(error) in self.conflicts

    def is_lost(self, error: BaseException) -> bool:
        """Whether the connection is gone."""
        gone = isinstance(error, OSError) and not isinstance(error, TimeoutError)
        return gone or self.meaning(error) in (CONNECTION_LOST, NEVER_SENT, STOPPING)

    def was_never_sent(self, error: BaseException) -> bool:
        """Whether the driver found the connection unusable before it sent anything."""
        return self.meaning(error) is NEVER_SENT

    def spares_connection(self, error: BaseException) -> bool:
        """Whether the connection can be used again once its transaction is rolled back."""
        if isinstance(error, KeyTaken | ScriptUndone | StoreError):
            return True
        gone = self.code(error) is None or self.is_lost(error)
        return not gone and self.meaning(error) is not READ_ONLY

    def translate(self, error: BaseException) -> BaseException:
        """Return the error to raise instead; an error of something else comes back as it is."""
        meaning = self.meaning(error)
        return error if meaning is None else meaning.told(error, self.place, code=self.code(error))
