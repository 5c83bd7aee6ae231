"""How deep a JSON value may be nested and how long its numbers may be, so that every process can read what another has stored."""

from __future__ import annotations

import re
import sys
from typing import Final

MAX_DEPTH: Final = 100
"""How many lists and objects may be nested in an argument or a result."""
MAX_READ: Final = 2 * MAX_DEPTH
"""How deep a stored value may be to be read: callbacks wrap what has ended in a few objects of their own."""
MAX_DIGITS: Final = 4_300
"""How many digits a whole number may have: Python reads no more unless it is told to."""

_SQUARE: Final = bytes.maketrans(b"{}", b"[]")
_ALL_ELSE: Final = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_LONG: Final = re.compile(rb"(?<![0-9])[0-9]{%d}" % (MAX_DIGITS + 1))


TOO_DEEP: Final = f"it is nested more than {MAX_DEPTH} deep"
TOO_LONG: Final = f"it has a whole number of more than {MAX_DIGITS:,} digits"


def beyond_bounds(raw: bytes, *, deepest: int = MAX_DEPTH) -> str | None:
    """Say what about a JSON text is beyond the bounds; `None` for nearly every text, after a short look."""
    if is_deeper(raw, deepest):
        return TOO_DEEP
    # Python itself refuses to write longer numbers, unless the process has raised its limit.
    if len(raw) <= MAX_DIGITS or 0 < sys.get_int_max_str_digits() <= MAX_DIGITS:
        return None
    return None if _LONG.search(b" ".join(_unescaped(raw).split(b'"')[::2])) is None else TOO_LONG


def is_deeper(raw: bytes, deepest: int) -> bool:
    """Whether lists and objects are nested deeper in a JSON text."""
    if len(raw) <= deepest or raw.count(b"[") + raw.count(b"{") <= deepest:
        return False
    # Quotes that only enclose other things are gone before the rest is looked at; a walk takes a hundred times as long.
    marks = _unescaped(raw).translate(_SQUARE, _ALL_ELSE).replace(b'""', b"")
    brackets = b"".join(marks.split(b'"')[::2])
    for _ in range(deepest):
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)


def _unescaped(raw: bytes) -> bytes:
    """Return a JSON text in which each quote begins or ends a string."""
    return raw.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in raw else raw
