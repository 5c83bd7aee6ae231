"""Text as people write and read it: values in messages, names, sizes, and the text and JSON that every store can keep."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, Final, TypeAlias

from duetime.errors import ConfigError, InvalidName, InvalidOption

_LONGEST_VALUE = 80
_LONGEST_LINE = 300


def shown(value: object) -> str:
    """Return a short text for any value, also for one that cannot be printed."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a broken repr must not hide the error that wants to show the value
        return f"something of type {type(value).__name__}"
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def printable(text: str) -> str:
    """Return a text with everything a terminal might obey, line breaks included, written as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str) -> str:
    """Return a stored text for a log line: short, and unable to pass for a line of its own."""
    return printable(text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}…")


def counted(count: float, noun: str) -> str:
    """Return a number with what it counts: `1 job`, `2 jobs`."""
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Ask for the names that someone who wrote `name` may have meant; empty if there are none."""
    known = list(names)
    tails = [candidate for candidate in known if candidate.rpartition(".")[2] == name]
    meant = tails or difflib.get_close_matches(name, known)
    return f"did you mean {' or '.join(meant)}?" if meant else ""


def ordinal(number: int) -> str:
    """Return a number as a place in a row: `1st`, `22nd`."""
    suffix = "th" if number % 100 // 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Replace what a database cannot keep in text: NUL and lone halves of surrogate pairs."""
    if text.isascii() and "\0" not in text:
        return text
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


MAX_NAME = 200
MAX_REASON = 1_000

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@<>-]*")
_NAMESPACE = re.compile(r"[a-z_][a-z0-9_]{0,30}")


def check_name(name: str, *, what: str) -> str:
    """Return the name, or raise `InvalidName` saying what is wrong with it."""
    if not isinstance(name, str):
        raise InvalidName(f"{what} must be text, not {type(name).__name__}")
    if len(name) > MAX_NAME:
        raise InvalidName(f"{what} {name[:40]!r}… has {len(name)} characters; at most {MAX_NAME} are allowed")
    if not _NAME.fullmatch(name):
        allowed = "letters, digits and . _ : / @ < > -, beginning with a letter, a digit or _"
        raise InvalidName(f"{what} {name!r} is not allowed: use {allowed}")
    return name


def list_with_total(names: Sequence[str], count: int) -> str:
    """Name a few, and say how many more there are."""
    more = count - len(names)
    return ", ".join(map(printable, names)) + (f" and {more:,} more" if more > 0 else "")


def short_list(names: Sequence[str], *, most: int = 10) -> str:
    """Name the first ones, and say how many more there are."""
    return list_with_total(names[:most], len(names))


def check_whole(value: object, least: int, most: int, *, what: str) -> int:
    """Return a whole number in a range, both ends included, or raise `InvalidOption`."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidOption(f"{what} must be a whole number from {least} to {most:,}, not {shown(value)}")
    return value


def check_choice(value: object, choices: Sequence[str], *, what: str) -> Any:
    """Return one of some words, or raise `InvalidOption`."""
    if value not in choices:
        raise InvalidOption(f"{what} must be one of {', '.join(map(repr, choices))}, not {shown(value)}")
    return value


def check_text(text: str, *, what: str) -> str:
    """Return a text that every store keeps as it is, or raise `InvalidOption`."""
    if not isinstance(text, str):
        raise InvalidOption(f"{what} must be text, not {shown(text)}")
    if clean_text(text) != text:
        raise InvalidOption(f"{what} {shown(text)} has NUL or half a pair of surrogates; leave it out")
    return text


def check_reason(reason: str) -> str:
    """Return the text of a reason, or raise `InvalidOption`."""
    check_text(reason, what="reason")
    if len(reason) > MAX_REASON:
        raise InvalidOption(f"reason has {len(reason):,} characters; at most {MAX_REASON:,} are allowed")
    return reason


def check_namespace(namespace: str) -> str:
    """Return the namespace, or raise `ConfigError`: it becomes a part of table names."""
    if not isinstance(namespace, str) or not _NAMESPACE.fullmatch(namespace):
        allowed = "at most 31 lower-case letters, digits and _, beginning with a letter or _"
        raise ConfigError(
            f"namespace {namespace!r:.80} is not allowed: use {allowed}, e.g. namespace='billing'"
        )
    return namespace


Size: TypeAlias = int | str

_SIZE = re.compile(r"(\d{1,12})\s?([KMGT]?)(i?)B", re.ASCII | re.IGNORECASE)
_SIZE_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def parse_size(size: Size, *, what: str = "size") -> int:
    """Return a size in bytes, or raise `InvalidOption`."""
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    if isinstance(size, str) and (match := _SIZE.fullmatch(size.strip())):
        number, prefix, binary = match.groups()
        unit: int = (1024 if binary else 1000) ** _SIZE_POWERS[prefix.upper()]
        if number.strip("0"):
            return int(number) * unit
    raise InvalidOption(f"{what} must be a number of bytes or text such as '500MB', not {shown(size)}")


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
    """Say what about a JSON text is beyond the bounds; `None` if nothing is."""
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
    # Only brackets outside strings are left, and pairs of them are removed from the inside out.
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


WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
ORDINALS = ("", "first", "second", "third", "fourth", "fifth")

_MOST_TIMES = 4
_SHORTEST_RUN = 3
_ENDLESS = 1_000_000

Run: TypeAlias = tuple[int, int]
"""The first and the last of whole numbers in a row."""


def join_words(words: Sequence[str], *, word: str = "and") -> str:
    """Join words with commas, and the last two with a word."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {word} {words[-1]}"


def runs_of(values: Sequence[int], size: int) -> list[Run]:
    """Return the runs in ordered values; the first value follows the last if that lies `size` behind it."""
    runs: list[Run] = []
    for value in values:
        if runs and value == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], value)
        else:
            runs.append((value, value))
    if len(runs) > 1 and values[-1] - values[0] == size - 1:
        runs = [*runs[1:-1], (runs[-1][0], runs[0][1])]
    return runs


def is_long(run: Run, size: int) -> bool:
    """Whether a run has three values or more."""
    return (run[1] - run[0]) % size + 1 >= _SHORTEST_RUN


def list_in_words(values: Sequence[int], say: Callable[[int], str], *, size: int = _ENDLESS) -> str:
    """Join values in words, with three or more in a row as a range."""
    words: list[str] = []
    for run in runs_of(values, size):
        ends = [*map(say, dict.fromkeys(run))]
        words += [" to ".join(ends)] if is_long(run, size) else ends
    return join_words(words)


def times_in_words(hours: Sequence[int], minutes: Sequence[int], seconds: Sequence[int]) -> str | None:
    """Say the times of day one by one, such as `at 09:00 and 17:00`; `None` if they are many."""
    if len(hours) * len(minutes) * len(seconds) > _MOST_TIMES:
        return None
    clock = "{:02}:{:02}" if [*seconds] == [0] else "{:02}:{:02}:{:02}"
    return f"at {join_words([clock.format(*time) for time in product(hours, minutes, seconds)])}"
