"""Cron rules: wall times in a zone, with a fixed meaning at clock changes, counted without walking them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from zoneinfo import ZoneInfo

from duetime.errors import InvalidCron, InvalidValue, InvalidZone
from duetime.model.time import LATEST, SECOND, Instant
from duetime.model.triggers.base import Trigger, set_fields
from duetime.model.triggers.cron_expression import (
    CronFields,
    CronToken,
    check_cron_text,
    describe_cron,
    parse_cron,
)
from duetime.model.triggers.every import Every, every
from duetime.model.triggers.zones import DAY_SECONDS, Zone, first_after_wall, zone, zone_hint

_ZONE_PREFIXES = ("CRON_TZ=", "TZ=")
_EVERY = "@every"


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
        if not self.fields.floating:
            return first_after_wall(self.place, instant, self.fields.first_from)
        second = instant // SECOND
        period = self.place.period_at(second)
        wall = second + 1 + period.offset
        while (match := self.fields.first_from(wall)) is not None:
            if (due := match - period.offset) < period.end:
                return due * SECOND if due * SECOND <= LATEST else None
            # Two days on, no clock shows again what it has shown, and none is a day ahead of UTC or behind.
            far = period.end > second + 2 * DAY_SECONDS
            period = self.place.period_at(max(period.end, match - DAY_SECONDS) if far else period.end)
            opening = period.start + period.offset
            wall = opening if opening < period.seen else max(match, opening)
        return None

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
        """Say the rule in English."""
        return f"{describe_cron(self.fields)}, {self.tz}"


def cron(expression: str, *, tz: str | ZoneInfo = "UTC", seed: str = "") -> Cron | Every:
    """Return the trigger for a cron expression of five fields, or of six with seconds first.

    Understood in addition to numbers, lists, ranges, steps and names: `L`, `LW`, `15W`, `FRI#2`, `FRIL`; `H` (a value drawn
    from the seed, which is the schedule's name unless given); `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`;
    `@every 15m`; and a zone in front, as in `TZ=Europe/Riga 0 3 * * *`.
    """
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
