"""Names that users give: tasks, queues, schedules, namespaces; and reasons."""

from __future__ import annotations

import re
from collections.abc import Sequence

from duetime.errors import ConfigError, InvalidName, InvalidOption
from duetime.model.shown import printable, shown
from duetime.model.texts import clean_text

MAX_NAME = 200
MAX_REASON = 1_000

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@<>-]*")
_NAMESPACE = re.compile(r"[a-z_][a-z0-9_]{0,30}")


def check_name(name: str, *, what: str) -> str:
    """Return the name, or raise `InvalidName` saying what is wrong with it."""
    if not isinstance(name, str):
        text = f"{what} must be text, not {type(name).__name__}"
        raise InvalidName(text)
    if len(name) > MAX_NAME:
        text = f"{what} {name[:40]!r}… has {len(name)} characters; at most {MAX_NAME} are allowed"
        raise InvalidName(text)
    if not _NAME.fullmatch(name):
        text = (
            f"{what} {name!r} is not allowed: use letters, digits and . _ : / @ < > -, "
            "beginning with a letter, a digit or _"
        )
        raise InvalidName(text)
    return name


def some(names: Sequence[str], count: int) -> str:
    """Name a few of so many."""
    more = count - len(names)
    return ", ".join(map(printable, names)) + (f" and {more:,} more" if more > 0 else "")


def named(names: Sequence[str], *, most: int = 10) -> str:
    """Name the first of them, and say how many more there are."""
    return some(names[:most], len(names))


def check_text(text: str, *, what: str) -> str:
    """Return a text that every store keeps as it is, or raise `InvalidOption`."""
    if clean_text(text) != text:
        message = f"{what} {shown(text)} has NUL or half a pair of surrogates in it, which no database keeps; leave them out"
        raise InvalidOption(message)
    return text


def check_reason(reason: str) -> str:
    """Return the text that somebody gives as a reason, or raise `InvalidOption`."""
    if not isinstance(reason, str):
        text = f"reason must be text, not {shown(reason)}"
        raise InvalidOption(text)
    if len(reason) > MAX_REASON:
        text = f"reason {reason[:40]!r}… has {len(reason):,} characters; at most {MAX_REASON:,} are allowed"
        raise InvalidOption(text)
    return check_text(reason, what="reason")


def check_namespace(namespace: str) -> str:
    """Return the namespace, or raise `ConfigError`: it becomes a part of table names."""
    if not isinstance(namespace, str) or not _NAMESPACE.fullmatch(namespace):
        text = (
            f"namespace {namespace!r:.80} is not allowed: use at most 31 lower-case letters, digits and _, "
            "beginning with a letter or _, e.g. namespace='billing'"
        )
        raise ConfigError(text)
    return namespace
