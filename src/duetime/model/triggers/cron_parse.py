"""Reads a cron expression; what it cannot read it shows, with a caret under the place."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NoReturn, TypeAlias

from duetime.errors import InvalidCron
from duetime.model.triggers.cron_fields import Days, Fields

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_LONGEST = 512
_MOST_ITEMS = 100
_EXAMPLE = "*/5 * * * *"
_WITHOUT_SECONDS = 5
_WITH_SECONDS = 6
_SUNDAY_AGAIN = 7

_HASHED = re.compile(r"H(?:\((\w+)-(\w+)\))?(?:/(\d+))?", re.ASCII)
_RANGE = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d+))?", re.ASCII)
_NEAR = re.compile(r"(\d+)W", re.ASCII)
_NTH = re.compile(r"(\w+)#([1-5])", re.ASCII)
_FINAL = re.compile(r"(\w+)L", re.ASCII)

Slot: TypeAlias = str
"""Where the bits of an item belong: "plain", or the attribute of `Days` that a special form fills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What one of the six fields may hold."""

    name: str
    low: int
    high: int
    expected: str
    example: str
    names: dict[str, int] = field(default_factory=dict)
    hash_high: int | None = None


def _names(text: str, first: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(text.split(), first)}


SECOND = Kind(name="second", low=0, high=59, expected="0-59", example="*/10 * * * * *")
MINUTE = Kind(name="minute", low=0, high=59, expected="0-59", example=_EXAMPLE)
HOUR = Kind(name="hour", low=0, high=23, expected="0-23", example="0 9-17 * * *")
DATE = Kind(
    name="day",
    low=1,
    high=31,
    expected="1-31, L (the last day), LW (the last Monday to Friday) or 15W (the nearest Monday to Friday)",
    example="0 9 1,15 * *",
    # Every month has these, so that a hashed day comes every month.
    hash_high=28,
)
MONTH = Kind(
    name="month",
    low=1,
    high=12,
    expected="1-12 or JAN-DEC",
    example="0 9 1 JAN,JUL *",
    names=_names("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", 1),
)
WEEKDAY = Kind(
    name="weekday",
    low=0,
    high=7,
    expected="0-7 (0 and 7 are Sunday), SUN-SAT, FRI#1 to FRI#5 (the first to the fifth Friday) or FRIL (the last Friday)",
    example="0 9 * * MON-FRI",
    names=_names("SUN MON TUE WED THU FRI SAT", 0),
    hash_high=6,
)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of an expression that knows where it stands in the whole."""

    whole: str
    start: int
    text: str

    def refuse(self, name: str, *, expected: str, example: str = _EXAMPLE) -> NoReturn:
        """Raise `InvalidCron` with a caret under this part."""
        whole = "".join(char if char.isprintable() else "?" for char in self.whole)
        shown = whole[self.start : self.start + len(self.text)]
        text = (
            f'bad {name} {shown!r} in "{whole}"\n'
            f"   {whole}\n"
            f"   {' ' * self.start}{'^' * max(1, len(shown))}\n"
            f'expected {expected}, e.g. "{example}"'
        )
        raise InvalidCron(text)

    def split(self, pattern: str) -> list[Part]:
        """Return the pieces that match `pattern`, each with its place."""
        found = re.finditer(pattern, self.text)
        return [Part(self.whole, self.start + match.start(), match.group()) for match in found]


def check_text(expression: object) -> str:
    """Return the expression with single spaces; raise `InvalidCron` if it is not text of a sane length."""
    if not isinstance(expression, str):
        text = f'a cron expression is text such as "{_EXAMPLE}", not {type(expression).__name__}'
        raise InvalidCron(text)
    if len(expression) > _LONGEST:
        raise InvalidCron(
            f"a cron expression has at most {_LONGEST} characters, not {len(expression)}: {expression[:40]!r}…"
        )
    return " ".join(expression.split())


@lru_cache(maxsize=1024)
def parse(expression: str, *, seed: str) -> Fields:
    """Read an expression of five or six fields or a macro; raise `InvalidCron` if it makes no rule that ever comes."""
    whole = MACROS.get(expression.lower(), expression)
    line = Part(whole, 0, whole)
    if whole.startswith("@"):
        line.refuse("macro", expected=f"{', '.join(MACROS)} or @every 15m", example="@daily")
    parts = line.split(r"\S+")
    if len(parts) not in (_WITHOUT_SECONDS, _WITH_SECONDS):
        expected = "5 fields (minute hour day month weekday) or 6 (second first)"
        line.refuse(f"number of fields ({len(parts)})", expected=expected)
    second = parts[0] if len(parts) == _WITH_SECONDS else Part(whole, 0, "0")
    minute, hour, day, month, weekday = parts[-_WITHOUT_SECONDS:]
    dates, weekdays = _read(day, DATE, seed), _read(weekday, WEEKDAY, seed)
    fields = Fields(
        seconds=_read(second, SECOND, seed)["plain"],
        minutes=_read(minute, MINUTE, seed)["plain"],
        hours=_read(hour, HOUR, seed)["plain"],
        months=_read(month, MONTH, seed)["plain"],
        days=Days(
            dates=dates["plain"],
            last=bool(dates["last"]),
            last_workday=bool(dates["last_workday"]),
            near=dates["near"],
            weekdays=(weekdays["plain"] | weekdays["plain"] >> _SUNDAY_AGAIN) & 0b111_1111,
            nth=weekdays["nth"],
            final=weekdays["final"],
            either=not (_is_open(day) or _is_open(weekday)),
        ),
        floating=_is_open(minute) or _is_open(hour),
        hashed=any(item.text.upper().startswith("H") for part in parts for item in part.split("[^,]+")),
    )
    if not fields.can_come():
        day.refuse("day", expected=f"a day that comes in month {month.text!r}", example="0 0 L 2 *")
    return fields


def _is_open(part: Part) -> bool:
    return part.text.startswith("*")


def _read(part: Part, kind: Kind, seed: str) -> dict[Slot, int]:
    items = part.split("[^,]+")
    if len(items) != part.text.count(",") + 1:
        part.refuse(kind.name, expected="a value on both sides of each comma", example=kind.example)
    if len(items) > _MOST_ITEMS:
        part.refuse(kind.name, expected=f"at most {_MOST_ITEMS} values", example=kind.example)
    bits: dict[Slot, int] = defaultdict(int)
    for item in items:
        slot, mask = _read_item(item, kind, seed)
        bits[slot] |= mask
    return bits


def _read_item(item: Part, kind: Kind, seed: str) -> tuple[Slot, int]:
    text = item.text.upper()
    special = None
    if kind is DATE:
        special = _special_date(item, text)
    elif kind is WEEKDAY:
        special = _special_weekday(item, text)
    if special is not None:
        return special
    if match := _HASHED.fullmatch(text):
        return "plain", _hashed(item, kind, match, seed)
    match = _RANGE.fullmatch(text)
    if match is None:
        item.refuse(kind.name, expected=kind.expected, example=kind.example)
    return "plain", _range(item, kind, match)


def _special_date(item: Part, text: str) -> tuple[Slot, int] | None:
    if text == "L":
        return "last", 1
    if text == "LW":
        return "last_workday", 1
    if match := _NEAR.fullmatch(text):
        return "near", 1 << _number(item, DATE, match[1])
    return None


def _special_weekday(item: Part, text: str) -> tuple[Slot, int] | None:
    if match := _NTH.fullmatch(text):
        return "nth", 1 << 7 * (int(match[2]) - 1) + _number(item, WEEKDAY, match[1]) % _SUNDAY_AGAIN
    if match := _FINAL.fullmatch(text):
        return "final", 1 << _number(item, WEEKDAY, match[1]) % _SUNDAY_AGAIN
    return None


def _range(item: Part, kind: Kind, match: re.Match[str]) -> int:
    star, first, last, step = match.groups()
    low, high = kind.low, kind.high
    if not star:
        low = _number(item, kind, first)
        if last:
            high = _number(item, kind, last)
            # SAT-SUN is a range that people write; only at its end can Sunday be the seventh day.
            high = _SUNDAY_AGAIN if kind is WEEKDAY and last == "SUN" else high
        elif not step:
            high = low
    if low > high:
        expected = f"the smaller value first (past the end, write {first}-{kind.high},{kind.low}-{last})"
        item.refuse(kind.name, expected=expected, example=kind.example)
    return _every(low, high, _step(item, kind, step))


def _hashed(item: Part, kind: Kind, match: re.Match[str], seed: str) -> int:
    first, last, step = match.groups()
    low, high = kind.low, kind.high if kind.hash_high is None else kind.hash_high
    if first:
        low, high = _number(item, kind, first), _number(item, kind, last)
        if low > high:
            item.refuse(kind.name, expected="the smaller value first", example="H(0-29) * * * *")
    # Here, since few rules need it: it sets up all of OpenSSL's hashes.
    import hashlib

    digest = hashlib.blake2b(f"{kind.name}:{seed}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    draw = int.from_bytes(digest, "big")
    if not step:
        return 1 << low + draw % (high - low + 1)
    gap = min(_step(item, kind, step), high - low + 1)
    return _every(low + draw % gap, high, gap)


def _every(low: int, high: int, step: int) -> int:
    return sum(1 << value for value in range(low, high + 1, step))


def _step(item: Part, kind: Kind, text: str | None) -> int:
    size = kind.high - kind.low + 1
    step = int(text) if text else 1
    if not 1 <= step <= size:
        expected = f"a step of 1-{size} after the slash (for a longer interval: @every)"
        item.refuse(kind.name, expected=expected, example="@every 90m")
    return step


def _number(item: Part, kind: Kind, text: str) -> int:
    value = int(text) if text.isdecimal() else kind.names.get(text, -1)
    if not kind.low <= value <= kind.high:
        item.refuse(kind.name, expected=kind.expected, example=kind.example)
    return value
