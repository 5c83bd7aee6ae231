"""What errors of a database on a network mean, and how they are told."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from duetime.errors import KeyTaken, SchemaMismatch, StoreError, StoreUnavailable, StoreUnusable
from duetime.failpoints import InjectedFault
from duetime.model.urls import parse_url
from duetime.stores.sql.driver import AlreadyStored, ScriptUndone


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


_AUTHORITY_OPTIONS: Final = {"PostgreSQL": "sslrootcert", "MariaDB": "ssl_ca"}
_NETWORK_ERRORS: Final[tuple[tuple[type[Exception], type[StoreError], str], ...]] = (
    (InjectedFault, StoreUnavailable, "{error}"),
    (
        PasswordAsked,
        StoreUnusable,
        "{place} asks for the password in clear, without TLS, and did not get it; set up TLS there, and add ?{option}=ca.pem",
    ),
    (
        ssl.SSLCertVerificationError,
        StoreUnusable,
        "{place} shows a certificate that is not trusted here ({error}); name who signed it: ?{option}=ca.pem",
    ),
    (
        ssl.SSLError,
        StoreUnavailable,
        "{place} cannot be reached by TLS: {error}; check that it speaks TLS at this port",
    ),
    (TimeoutError, StoreUnavailable, "{place} did not answer in time; see whether it is busy or cut off"),
    (
        OSError,
        StoreUnavailable,
        "{place} cannot be reached: {error}; check that it runs, and host and port in the URL",
    ),
)
"""Looked through in order; the narrower come first."""


def unreachable(error: BaseException, place: DatabaseLabel) -> BaseException:
    """Return what an error of the network means; what is none comes back as it is."""
    for source, kind, text in _NETWORK_ERRORS:
        if isinstance(error, source):
            return kind(text.format(place=place, error=place.say(error), option=place.authority))
    return error


ErrorTranslator = Callable[[BaseException, DatabaseLabel], BaseException]


class ErrorTranslation:
    """Raises what the driver raises as our own errors; has no state, because every verb enters it."""

    __slots__ = ("_place", "_translate")

    def __init__(self, place: DatabaseLabel, translate: ErrorTranslator) -> None:
        self._place = place
        self._translate = translate

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, Exception) and (translated := self._translate(error, self._place)) is not error:
            raise translated from error


class ErrorMeaning(NamedTuple):
    """An error of ours, and how it is told."""

    kind: type[StoreError]
    text: str

    def told(self, error: BaseException, place: DatabaseLabel) -> StoreError:
        """Return the error to raise."""
        names = {"user": place.user, "host": place.host, "database": place.database, "place": place}
        return self.kind(self.text.format(error=place.say(error), **names))


def refused(error: BaseException, place: DatabaseLabel, code: str) -> StoreError:
    """Return the error for a code that means nothing to us."""
    return StoreError(f"{place} refused a statement: {place.say(error)} ({code or 'no code'})")


LOGIN_REFUSED: Final = ErrorMeaning(
    StoreUnusable, "{user} may not log in at {host} ({error}); check the user and password in the URL"
)
NO_TLS: Final = ErrorMeaning(
    StoreUnusable,
    "{place} and we found no way to encrypt the connection ({error}); check ?ssl_ca= in the URL",
)
NO_DATABASE: Final = ErrorMeaning(
    StoreUnusable,
    'there is no database "{database}" at {host} ({error}); create it: CREATE DATABASE {database}',
)
NO_RIGHTS: Final = ErrorMeaning(
    StoreUnusable, '{error}; grant {user} the rights on the tables in "{database}"'
)
NO_TABLE: Final = ErrorMeaning(SchemaMismatch, "{error}; run `duetime migrate`")
STATEMENT_LOG: Final = ErrorMeaning(
    StoreUnusable,
    "{place} logs statements, which cannot be done for transactions as ours ({error}); set binlog_format to ROW",
)
# Unavailable rather than unusable: after a failover the next connection may reach the new primary.
READ_ONLY: Final = ErrorMeaning(
    StoreUnavailable, "{place} is read-only at present ({error}); connect to the primary"
)
DISK_FULL: Final = ErrorMeaning(
    StoreUnavailable, "the disk of {place} is full ({error}); free some space there"
)
TOO_MANY_CONNECTIONS: Final = ErrorMeaning(
    StoreUnavailable,
    "{place} has no connection left for us ({error}); raise its max_connections or lower ?pool=",
)
TIMED_OUT: Final = ErrorMeaning(
    StoreUnavailable, "{place} took too long and was stopped ({error}); see what it waits for"
)
CONNECTION_LOST: Final = ErrorMeaning(
    StoreUnavailable, "the connection to {place} was lost ({error}); try again"
)
NEVER_SENT: Final = ErrorMeaning(StoreUnavailable, "the connection to {place} was gone ({error}); try again")
CONFLICT: Final = ErrorMeaning(
    StoreUnavailable, "too many others change the same rows at once ({error}); try again"
)
TOO_LARGE: Final = ErrorMeaning(
    StoreError,
    "{place} takes no statement so large ({error}); raise its max_allowed_packet, or send less at once",
)
DUPLICATE_KEY: Final = ErrorMeaning(AlreadyStored, "{error}")
NO_SAVEPOINT: Final = ErrorMeaning(StoreError, "{error}")


class ErrorCodes:
    """How one database numbers its errors, whose first argument is the number."""

    def __init__(self, errors: type[Exception], listed: Mapping[ErrorMeaning, str]) -> None:
        self._errors = errors
        self._meanings = {code: meaning for meaning, codes in listed.items() for code in codes.split()}
        self.judge = self._judge()
        """Tells what they mean for what was being done."""

    def of(self, error: BaseException) -> str | None:
        """Return the code of an error; None for what is not the database's."""
        return str(error.args[0]) if isinstance(error, self._errors) and error.args else None

    def translate(self, error: BaseException, place: DatabaseLabel) -> BaseException:
        """Return the error to raise instead; what is not the database's comes back as it is."""
        code = self.of(error)
        if code is None:
            return unreachable(error, place)
        if isinstance(error.__cause__, OSError):
            # What the network has said says more than what the driver makes of it.
            return unreachable(error.__cause__, place)
        meaning = self._meanings.get(code)
        return refused(error, place, code) if meaning is None else meaning.told(error, place)

    def _judge(self) -> ErrorPredicates:
        return ErrorPredicates(
            is_conflict=lambda error: self._means(error) in (CONFLICT, DUPLICATE_KEY),
            is_lost=lambda error: (
                self._means(error) in (CONNECTION_LOST, NEVER_SENT)
                or (isinstance(error, OSError) and not isinstance(error, TimeoutError))
            ),
            was_never_sent=lambda error: self._means(error) == NEVER_SENT,
            spares_connection=lambda error: (
                isinstance(error, KeyTaken | ScriptUndone | StoreError)
                or (
                    self.of(error) is not None
                    and self._means(error) not in (CONNECTION_LOST, NEVER_SENT, READ_ONLY)
                )
            ),
            misses_savepoint=lambda error: self._means(error) is NO_SAVEPOINT,
            misses_table=lambda error: self._means(error) is NO_TABLE,
            # A statement that fails costs a transaction nothing else here.
            is_aborted=lambda _: False,
        )

    def _means(self, error: BaseException) -> ErrorMeaning | None:
        return self._meanings.get(self.of(error) or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPredicates:
    """What the errors of a driver mean for what was being done."""

    is_conflict: Callable[[BaseException], bool]
    """Whether the whole script can be run again, because the transaction of this one came to nothing."""
    is_lost: Callable[[BaseException], bool]
    """Whether the connection is gone."""
    was_never_sent: Callable[[BaseException], bool]
    """Whether the driver found the connection unusable before it sent anything."""
    spares_connection: Callable[[BaseException], bool]
    """Whether the connection can go on to be used once its transaction is rolled back."""
    misses_savepoint: Callable[[BaseException], bool]
    """Whether a savepoint was not there any more, because its transaction had been ended."""
    misses_table: Callable[[BaseException], bool]
    """Whether a table or a column was not there."""
    is_aborted: Callable[[BaseException], bool]
    """Whether a statement of the transaction had failed before, so that it can only be rolled back."""
