"""Values of any kind, as they appear in messages."""

from __future__ import annotations

_LONGEST = 80
_LONGEST_LINE = 300


def shown(value: object) -> str:
    """Return a short text for any value, also for one that cannot be printed."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a broken repr must not hide the error that wants to show the value
        return f"something of type {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def printable(text: str) -> str:
    """Return a text with everything a terminal might obey, line breaks included, written as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str) -> str:
    """Return a stored text for a log line: short, and unable to pass for a line of its own."""
    return printable(text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}…")
