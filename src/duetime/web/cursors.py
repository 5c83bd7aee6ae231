"""Cursors as clients see them: opaque, and good only for the list that has given them."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import msgspec

from duetime.errors import InvalidCursor

_DIGEST = 8


def seal(cursor: Any, *about: object) -> str | None:
    """Return a cursor, or whatever says where to go on, for clients; `about` says of which list it is."""
    if cursor is None:
        return None
    return base64.urlsafe_b64encode(_digest(about) + msgspec.json.encode(cursor)).decode().rstrip("=")


def unseal(sealed: str | None, *about: object) -> Any:
    """Return what was sealed; raise `InvalidCursor` for what was not, or not for this list."""
    if sealed is None:
        return None
    try:
        raw = base64.b64decode(sealed + "=" * (-len(sealed) % 4), altchars=b"-_", validate=True)
        found = msgspec.json.decode(raw[_DIGEST:])
    except (ValueError, RecursionError):
        raise InvalidCursor("this is not a cursor; pass the `next` of the page before as it is") from None
    if raw[:_DIGEST] != _digest(about):
        raise InvalidCursor("this cursor is of another list; use it with the filters of the page before")
    return found


def _digest(about: tuple[object, ...]) -> bytes:
    return hashlib.sha256(msgspec.json.encode(about, order="deterministic")).digest()[:_DIGEST]
