"""What Redis' errors mean for the caller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from redis import exceptions

from duetime.errors import ConfigError, DuetimeError, StoreError, StoreUnavailable, StoreUnusable
from duetime.failpoints import InjectedFault

_UNUSABLE: Final = {
    "NOAUTH": "{place} wants a password; put it into the URL: redis://:password@host",
    "WRONGPASS": "{place} refuses the user or the password in the URL; check both",
    "NOPERM": "the user may not do this at {place} ({error}); see its rights with ACL GETUSER",
    "certificate is not valid for": "{error}; use a name in the URL that it is valid for",
    "certificate verify failed": "{place} shows a certificate that is not trusted here ({error}); name who signed it: "
    "?ssl_ca_certs=ca.pem",
    "alert certificate required": "{place} wants to see a certificate ({error}); name it: "
    "?ssl_certfile=own.pem&ssl_keyfile=own.key",
    "wrong version number": "{place} does not speak TLS ({error}); use its port for TLS",
    "unknown command": "{place} is older than Redis 7, which this store needs ({error}); upgrade it",
}
_UNAVAILABLE: Final = {
    # After a failover the next connection may reach the new primary.
    "READONLY": "{place} is a replica at present ({error}); connect to the primary",
    "LOADING": "{place} is still reading its data ({error}); wait for it",
    "MASTERDOWN": "{place} is a replica that has lost its primary ({error}); connect to the primary",
    "CLUSTERDOWN": "the cluster at {place} cannot serve us at present ({error}); see CLUSTER INFO",
    "OOM": "{place} has no memory left ({error}); raise its maxmemory or prune",
    "MISCONF": "{place} cannot write to its disk and takes no changes ({error}); make room there",
    "NOREPLICAS": "{place} has fewer replicas than min-replicas-to-write ({error}); start them",
    "BUSY": "{place} is busy with another client's script ({error}); end it: FUNCTION KILL",
    "non local key": "{place} moves our keys to another server ({error}); wait until it has",
}
_BY_TEXT: Final = ((StoreUnusable, _UNUSABLE), (StoreUnavailable, _UNAVAILABLE))
"""A code begins what the server said; words with a space in them may stand anywhere."""
_TOLD_BY_TEXT: Final = exceptions.ResponseError, exceptions.ConnectionError, exceptions.RedisClusterException
"""The errors whose text tells more than their type."""
_CODE_OF_TYPE: Final[dict[type[Exception], str]] = {
    exceptions.ReadOnlyError: "READONLY",
    exceptions.BusyLoadingError: "LOADING",
    exceptions.OutOfMemoryError: "OOM",
    exceptions.NoPermissionError: "NOPERM",
    exceptions.ClusterDownError: "CLUSTERDOWN",
    exceptions.MasterDownError: "MASTERDOWN",
}
"""The driver takes these codes off the front of what the server said."""

_LOGIN_REFUSED: Final = "{place} refuses the user or the password in the URL ({error}); check both"
_MOVING: Final = (
    "{place} moves our keys to another server ({error}); wait for that, or end it with CLUSTER SETSLOT"
)
_CLUSTER: Final = "the cluster at {place} cannot serve us: {error}; see CLUSTER INFO"
_SILENT: Final = "{place} did not answer in time; see whether it is busy or cut off"
_UNREACHABLE: Final = "{place} cannot be reached: {error}; check that it runs, and host and port in the URL"
_BY_TYPE: Final[Mapping[type[Exception], tuple[type[DuetimeError], str]]] = {
    InjectedFault: (StoreUnavailable, "{error}"),
    exceptions.AuthenticationError: (StoreUnusable, _LOGIN_REFUSED),
    exceptions.TimeoutError: (StoreUnavailable, _SILENT),
    exceptions.ConnectionError: (StoreUnavailable, _UNREACHABLE),
    exceptions.ClusterError: (StoreUnavailable, _MOVING),
    exceptions.RedisError: (StoreError, "{place} refused a call: {error}"),
    exceptions.RedisClusterException: (StoreUnavailable, _CLUSTER),
    TimeoutError: (StoreUnavailable, _SILENT),
    OSError: (StoreUnavailable, _UNREACHABLE),
    ValueError: (ConfigError, "the URL for {place} cannot be used: {error}"),
}
"""Looked through in order; the narrower come first."""


def translate(error: Exception, place: str) -> Exception:
    """Return the error to raise instead; what is not the server's comes back as it is."""
    said = str(error) or type(error).__name__
    if isinstance(error, _TOLD_BY_TEXT):
        code = _CODE_OF_TYPE.get(type(error), said)
        for kind, texts in _BY_TEXT:
            for words, text in texts.items():
                if code.startswith(words) or (" " in words and words in said):
                    return kind(text.format(place=place, error=said))
    for source, (kind_, text) in _BY_TYPE.items():
        if isinstance(error, source):
            return kind_(text.format(place=place, error=said))
    return error


class ErrorTranslation:
    """Within it, errors of the driver, and those that a test injects, are raised as those of a store."""

    def __init__(self, place: object) -> None:
        self._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception):
            translated = translate(error, str(self._place))
            if translated is not error:
                raise translated from error


def is_unanswered(error: BaseException) -> bool:
    """Whether a call may have had its effect, though no answer to it came."""
    # Subclasses of the driver's `ConnectionError` are answers of the server.
    silent = isinstance(error, TimeoutError | exceptions.TimeoutError)
    return silent or type(error) is exceptions.ConnectionError


def is_missing(error: Exception) -> bool:
    """Whether the server does not know our functions, because it is new, was emptied, or took over from another."""
    return isinstance(error, exceptions.ResponseError) and "Function not found" in str(error)
