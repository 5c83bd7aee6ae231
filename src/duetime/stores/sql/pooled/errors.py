"""What errors of a database on a network mean for the caller."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from duetime.errors import StoreError, StoreUnavailable, StoreUnusable
from duetime.failpoints import InjectedFault


class Place(NamedTuple):
    """A database as messages name it, never with its password."""

    user: str
    host: str
    database: str
    password: str
    kind: str = "PostgreSQL"

    @classmethod
    def of(cls, dsn: str, kind: str = "PostgreSQL") -> Place:
        """Read a URL as far as it goes; what it leaves out, the driver takes from the environment."""
        try:
            parts = urlsplit(dsn)
            host = parts.netloc.rpartition("@")[2]
            user, password = unquote(parts.username or ""), unquote(parts.password or "")
        except ValueError:
            return cls("the user", "the server", "", "", kind)
        database = unquote(parts.path.lstrip("/"))
        return cls(user or "the user", host or "the local server", database or user, password, kind)

    def __str__(self) -> str:
        return f"{self.kind} at {self.host}"

    def say(self, error: BaseException) -> str:
        """Return an error's text without our password, should it be in there."""
        text = str(error) or type(error).__name__
        return text.replace(self.password, "***") if self.password else text


class Stale(ConnectionError):
    """A connection was found lost before anything was sent that could have had an effect."""


_AUTHORITY: Final = {"PostgreSQL": "sslrootcert", "MariaDB": "ssl_ca"}
_ANYWHERE: Final[tuple[tuple[type[Exception], type[StoreError], str], ...]] = (
    (InjectedFault, StoreUnavailable, "{error}"),
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


def unreachable(error: BaseException, place: Place) -> BaseException:
    """Return what an error of the network means; what is none comes back as it is."""
    for source, kind, text in _ANYWHERE:
        if isinstance(error, source):
            return kind(text.format(place=place, error=place.say(error), option=_AUTHORITY[place.kind]))
    return error


Translate = Callable[[BaseException, Place], BaseException]


class OwnErrors:
    """Raises what the driver raises as our own errors; has no state, because every verb enters it."""

    __slots__ = ("_place", "_translate")

    def __init__(self, place: Place, translate: Translate) -> None:
        self._place = place
        self._translate = translate

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, Exception) and (translated := self._translate(error, self._place)) is not error:
            raise translated from error
