"""Values of any kind, as they appear in error messages."""

from __future__ import annotations

_LONGEST = 80


def shown(value: object) -> str:
    """Return a short text for any value, also for one that cannot be printed."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a broken repr must not hide the error that wants to show the value
        return f"something of type {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
