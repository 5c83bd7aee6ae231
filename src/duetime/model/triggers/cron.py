"""Cron rules: wall times in a zone, with a fixed meaning at clock changes, counted without walking them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, overload
from zoneinfo import ZoneInfo

from duetime.errors import InvalidCron, InvalidValue, InvalidZone
from duetime.model.text import shown
from duetime.model.time import LATEST, SECOND, Instant
from duetime.model.triggers.base import Trigger, set_fields
from duetime.model.triggers.cron_expression import (
    CRON_FIELDS,
    CronFieldKind,
    CronToken,
    check_cron_text,
    parse_cron,
    read_cron_field,
)
from duetime.model.triggers.cron_fields import CronFields
from duetime.model.triggers.cron_words import describe_cron
from duetime.model.triggers.every import Every, every
from duetime.model.triggers.zones import Zone, first_after_wall, zone, zone_hint

_ZONE_PREFIXES = ("CRON_TZ=", "TZ=")
_EVERY = "@every"
# From the smallest field on; a weekday does not ask for a day of the month.
_LOWEST = {"second": "0", "minute": "0", "hour": "0", "weekday": "*", "day": "1", "month": "1"}

CronValue: TypeAlias = int | str
"""A field of a cron rule: a number, or text as it stands in an expression."""


@dataclass(frozen=True, slots=True)
class Cron(Trigger):
    """A cron rule.

    When the clock is set forward, a fixed wall time that the gap swallows comes once, right after the gap; when it
    is set back, a fixed wall time that comes twice counts once, the first time. A rule whose minute or hour begins
    with `*` follows the wall clock instead: nothing is made up in the gap, and the repeated hour repeats.
    """

    kind = "cron"

    expression: str
    tz: str = "UTC"
    seed: str = ""
    fields: CronFields = field(init=False, repr=False, compare=False)
    place: Zone = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.seed, str):
            raise InvalidCron(f"the seed of a cron rule is text, not {type(self.seed).__name__}")
        expression, place = check_cron_text(self.expression), zone(self.tz)
        fields = parse_cron(expression, seed=self.seed)
        # A seed that nothing draws from must not make two equal rules differ.
        seed = self.seed if fields.hashed else ""
        set_fields(self, expression=expression, tz=place.key, seed=seed, fields=fields, place=place)

    def after(self, instant: Instant) -> Instant | None:
        """Return the first occurrence strictly after `instant`."""
        fields = self.fields
        return first_after_wall(self.place, instant, fields.first_from, repeats=fields.floating)

    def count(self, after: Instant, until: Instant) -> int:
        """Return how many occurrences lie in `after < occurrence <= until`, without walking them."""
        fields = self.fields
        start, end = after // SECOND + 1, min(until, LATEST) // SECOND + 1
        found = 0
        while start < end:
            period = self.place.period_at(start)
            wall, stop = start + period.offset, min(end, period.end) + period.offset
            if not fields.floating:
                if start == period.start and period.seen < wall:
                    # What the gap has swallowed comes once, as it ends.
                    found += fields.count(period.seen, wall + 1) > 0
                    wall += 1
                wall = max(wall, period.seen)
            if wall < stop:
                found += fields.count(wall, stop)
            start = period.end
        return found

    def seeded(self, name: str) -> Cron:
        """Return this rule with its `H` fields spread by `name`, unless it has none or already has a seed."""
        return replace(self, seed=name) if self.fields.hashed and not self.seed else self

    def describe(self) -> str:
        """Say the rule in English; what is drawn from a name that it does not have is not stated."""
        if self.is_unnamed:
            return f'"{self.expression}" with H drawn from the schedule\'s name, {self.tz}'
        return f"{describe_cron(self.fields)}, {self.tz}"

    @property
    def is_unnamed(self) -> bool:
        """Whether its `H` fields wait for the name of a schedule, without which its times are an example."""
        return self.fields.hashed and not self.seed


@overload
def cron(expression: str, *, tz: str | ZoneInfo = "UTC", seed: str = "") -> Cron | Every: ...


@overload
def cron(
    *,
    second: CronValue | None = None,
    minute: CronValue | None = None,
    hour: CronValue | None = None,
    day: CronValue | None = None,
    month: CronValue | None = None,
    weekday: CronValue | None = None,
    year: CronValue | None = None,
    tz: str | ZoneInfo = "UTC",
    seed: str = "",
) -> Cron: ...


def cron(
    expression: str | None = None,
    *,
    second: CronValue | None = None,
    minute: CronValue | None = None,
    hour: CronValue | None = None,
    day: CronValue | None = None,
    month: CronValue | None = None,
    weekday: CronValue | None = None,
    year: CronValue | None = None,
    tz: str | ZoneInfo = "UTC",
    seed: str = "",
) -> Cron | Every:
    """Return the trigger for a cron expression of five fields, six with seconds first, or seven with the year last.

    Understood in addition to numbers, lists, ranges, steps and names: `L`, `L-3`, `LW`, `15W`, `FRI#2`, `FRIL`; `?`; `H` (a
    value drawn from the seed, which is the schedule's name unless given); `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`;
    `@every 15m`; and a zone in front, as in `TZ=Europe/Riga 0 3 * * *`.

    The fields may be given by name instead, as in `cron(hour=9, minute=30)`. One that is left out is open if it is larger
    than the smallest that is given, and has its lowest value if it is smaller.
    """
    fields = zip(CRON_FIELDS, (second, minute, hour, day, month, weekday, year), strict=True)
    named = {kind: value for kind, value in fields if value is not None}
    if named and expression is None:
        return Cron(_expression(named, seed), zone(tz).key, seed)
    if named:
        names = ", ".join(kind.name for kind in named)
        raise InvalidCron(
            f"give cron() an expression or its fields, not both: {shown(expression)} and {names}"
        )
    rule, place = check_cron_text(expression), zone(tz).key
    for prefix in _ZONE_PREFIXES:
        if rule.startswith(prefix):
            inner, _, rest = rule.removeprefix(prefix).partition(" ")
            if place not in ("UTC", _zone_in_front(CronToken(rule, len(prefix), inner))):
                raise InvalidCron(f"{prefix}{inner} and tz={place!r} are two zones; give one of them")
            place, rule = inner, rest
    word, _, interval = rule.partition(" ")
    if word.lower() == _EVERY:
        return _every(rule, interval)
    return Cron(rule, place, seed)


def _expression(named: Mapping[CronFieldKind, object], seed: str) -> str:
    """Return the expression for fields that are given by name."""
    texts = {kind.name: _field_text(kind, value, seed) for kind, value in named.items()}
    if {"hour", "second"} <= texts.keys() and "minute" not in texts:
        raise InvalidCron(
            "hour and second leave the minute open: say minute=0, or minute='*' for each of them"
        )
    for name, lowest in _LOWEST.items():
        if name in texts:
            break
        texts[name] = lowest
    second, *others, year = (texts.get(kind.name, "*") for kind in CRON_FIELDS)
    if year != "*":
        others = [second, *others, year]
    elif second != "0":
        others = [second, *others]
    return " ".join(others)


def _field_text(kind: CronFieldKind, value: object, seed: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise InvalidCron(f"{kind.name} is a number, or text such as '1,15' or '*/5', not {shown(value)}")
    text = check_cron_text(str(value))
    read_cron_field(CronToken(f"{kind.name}={text}", len(kind.name) + 1, text), kind, seed)
    return text


def _zone_in_front(part: CronToken) -> str:
    try:
        return zone(part.text).key
    except InvalidZone:
        expected = f"the IANA name of a time zone ({zone_hint(part.text)})"
        part.refuse("time zone", expected=expected, example="TZ=Europe/Riga 0 3 * * *")


def _every(rule: str, interval: str) -> Every:
    try:
        return every(interval)
    except InvalidValue:
        expected = "a duration of at least 1ms, such as 15m or 1h30m"
        CronToken(rule, len(_EVERY) + 1, interval).refuse("interval", expected=expected, example="@every 15m")
