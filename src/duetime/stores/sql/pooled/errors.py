"""What errors of a database on a network mean for the caller."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final, NamedTuple

from duetime.errors import StoreError, StoreUnavailable, StoreUnusable
from duetime.failpoints import InjectedFault
from duetime.model.urls import parse


class Place(NamedTuple):
    """A database as messages name it, never with its password."""

    user: str
    host: str
    database: str
    password: str
    kind: str = "PostgreSQL"

    @classmethod
    def of(cls, dsn: str, kind: str = "PostgreSQL") -> Place:
        """Read a URL; what it leaves out, the driver takes from the environment."""
        url = parse(dsn)
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
        return _AUTHORITY[self.kind]

    def say(self, error: BaseException) -> str:
        """Return an error's text without our password, should it be in there."""
        text = str(error) or type(error).__name__
        return text.replace(self.password, "***") if self.password else text


class PasswordAsked(Exception):
    """A server wants the password itself, on a connection by which it must not be sent."""


class Stale(ConnectionError):
    """A connection was found lost before anything was sent that could have had an effect."""


_AUTHORITY: Final = {"PostgreSQL": "sslrootcert", "MariaDB": "ssl_ca"}
_ANYWHERE: Final[tuple[tuple[type[Exception], type[StoreError], str], ...]] = (
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


def unreachable(error: BaseException, place: Place) -> BaseException:
    """Return what an error of the network means; what is none comes back as it is."""
    for source, kind, text in _ANYWHERE:
        if isinstance(error, source):
            return kind(text.format(place=place, error=place.say(error), option=place.authority))
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
