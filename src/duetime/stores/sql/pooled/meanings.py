"""What a server's refusals mean, whatever their codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from duetime.errors import (
    KeyTaken,
    SchemaMismatch,
    StoreError,
    StoreUnavailable,
    StoreUnusable,
)
from duetime.stores.sql.driver import Duplicate, TakenBack
from duetime.stores.sql.pooled.connection import Judge
from duetime.stores.sql.pooled.errors import Place, unreachable


class Meaning(NamedTuple):
    """An error of ours, and how it is told."""

    kind: type[StoreError]
    text: str

    def told(self, error: BaseException, place: Place) -> StoreError:
        """Return the error to raise."""
        names = {"user": place.user, "host": place.host, "database": place.database, "place": place}
        return self.kind(self.text.format(error=place.say(error), **names))


def refused(error: BaseException, place: Place, code: str) -> StoreError:
    """Return the error for a code that means nothing to us."""
    return StoreError(f"{place} refused a statement: {place.say(error)} ({code or 'no code'})")


LOGIN: Final = Meaning(
    StoreUnusable, "{user} may not log in at {host} ({error}); check the user and password in the URL"
)
NO_TLS: Final = Meaning(
    StoreUnusable,
    "{place} and we found no way to encrypt the connection ({error}); check ?ssl_ca= in the URL",
)
NO_DATABASE: Final = Meaning(
    StoreUnusable,
    'there is no database "{database}" at {host} ({error}); create it: CREATE DATABASE {database}',
)
NO_RIGHTS: Final = Meaning(StoreUnusable, '{error}; grant {user} the rights on the tables in "{database}"')
NO_TABLE: Final = Meaning(SchemaMismatch, "{error}; run `duetime migrate`")
STATEMENT_LOG: Final = Meaning(
    StoreUnusable,
    "{place} logs statements, which cannot be done for transactions as ours ({error}); set binlog_format to ROW",
)
# Unavailable rather than unusable: after a failover the next connection may reach the new primary.
READ_ONLY: Final = Meaning(
    StoreUnavailable, "{place} is read-only at present ({error}); connect to the primary"
)
DISK_FULL: Final = Meaning(StoreUnavailable, "the disk of {place} is full ({error}); free some space there")
CROWDED: Final = Meaning(
    StoreUnavailable,
    "{place} has no connection left for us ({error}); raise its max_connections or lower ?pool=",
)
SLOW: Final = Meaning(
    StoreUnavailable, "{place} took too long and was stopped ({error}); see what it waits for"
)
LOST: Final = Meaning(StoreUnavailable, "the connection to {place} was lost ({error}); try again")
UNSENT: Final = Meaning(StoreUnavailable, "the connection to {place} was gone ({error}); try again")
CONFLICT: Final = Meaning(
    StoreUnavailable, "too many others change the same rows at once ({error}); try again"
)
TOO_LARGE: Final = Meaning(
    StoreError,
    "{place} takes no statement so large ({error}); raise its max_allowed_packet, or send less at once",
)
TAKEN: Final = Meaning(Duplicate, "{error}")
NO_SAVEPOINT: Final = Meaning(StoreError, "{error}")


class Codes:
    """How one database numbers its errors, whose first argument is the number."""

    def __init__(self, errors: type[Exception], listed: Mapping[Meaning, str]) -> None:
        self._errors = errors
        self._meanings = {code: meaning for meaning, codes in listed.items() for code in codes.split()}
        self.judge = self._judge()
        """Tells what they mean for what was being done."""

    def of(self, error: BaseException) -> str | None:
        """Return the code of an error; None for what is not the database's."""
        return str(error.args[0]) if isinstance(error, self._errors) and error.args else None

    def translate(self, error: BaseException, place: Place) -> BaseException:
        """Return the error to raise instead; what is not the database's comes back as it is."""
        code = self.of(error)
        if code is None:
            return unreachable(error, place)
        if isinstance(error.__cause__, OSError):
            # What the network has said says more than what the driver makes of it.
            return unreachable(error.__cause__, place)
        meaning = self._meanings.get(code)
        return refused(error, place, code) if meaning is None else meaning.told(error, place)

    def _judge(self) -> Judge:
        return Judge(
            is_conflict=lambda error: self._means(error) in (CONFLICT, TAKEN),
            is_lost=lambda error: (
                self._means(error) in (LOST, UNSENT)
                or (isinstance(error, OSError) and not isinstance(error, TimeoutError))
            ),
            was_never_sent=lambda error: self._means(error) == UNSENT,
            spares_connection=lambda error: (
                isinstance(error, KeyTaken | TakenBack | StoreError)
                or (self.of(error) is not None and self._means(error) not in (LOST, UNSENT, READ_ONLY))
            ),
            misses_savepoint=lambda error: self._means(error) is NO_SAVEPOINT,
            misses_table=lambda error: self._means(error) is NO_TABLE,
            # A statement that fails costs a transaction nothing else here.
            is_aborted=lambda _: False,
        )

    def _means(self, error: BaseException) -> Meaning | None:
        return self._meanings.get(self.of(error) or "")
