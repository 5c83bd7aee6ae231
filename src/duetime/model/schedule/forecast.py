"""The load to come: how many jobs the schedules will make in each hour, and which minutes are the busiest."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from zoneinfo import ZoneInfo

from duetime.model.schedule.occurrences import jobs_left
from duetime.model.schedule.record import StoredSchedule
from duetime.model.text import check_whole, counted, list_with_total, short_list
from duetime.model.time import DAY, HOUR, MINUTE, SECOND, Instant, to_datetime
from duetime.model.triggers.base import NoOccurrence, Trigger
from duetime.model.triggers.specs import UnreadableTrigger, schedule_trigger
from duetime.model.triggers.zones import zone

MAX_DAYS = 31
MOST_STEPS = 500_000
"""How many occurrences and counts triggers are asked for in all."""

_MAX_LISTED = 10
_MAX_NAMED = 5
"""How many schedules are named for a minute, and for each reason to be left out."""
_HOUR_SECONDS = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class HourLoad:
    """An hour of the wall clock, and how many jobs fall due in it."""

    at: datetime
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MinuteLoad:
    """One of the busiest minutes."""

    at: datetime
    jobs: int
    schedules: int
    """How many schedules make them, without those that were only counted."""
    names: tuple[str, ...]
    """A few of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The jobs that schedules will make, if nothing changes."""

    start: datetime
    end: datetime
    tz: str
    jobs: int
    at_least: bool
    """Whether there are more than could be counted."""
    schedules: int
    """How many were looked at."""
    hours: tuple[HourLoad, ...]
    busiest: tuple[MinuteLoad, ...]
    """The busiest minutes, the busiest first."""
    peak: int
    """The most jobs in a minute."""
    advice: str
    """What would spread the busiest minute, in a sentence."""
    counted_only: tuple[str, ...]
    """Schedules that come so often that they were only counted: spread evenly over each hour."""
    left_out: dict[str, str]
    """Schedules that will make nothing, and why."""

    def __str__(self) -> str:
        return "\n".join(_report(self))


@dataclass(slots=True, kw_only=True)
class SharedRule:
    """Schedules whose jobs fall due at the same instants, and how many jobs each of them makes in which minute."""

    trigger: Trigger
    after: Instant
    most: int | None
    """How many jobs each of them may still make."""
    names: list[str] = field(default_factory=list[str])
    minutes: Counter[int] = field(default_factory=Counter[int])

    def known(self, end: Instant) -> int | None:
        """How often each of them comes up to the end, if that can be told without a walk."""
        count = self.trigger.count(self.after, end)
        return count if count is None or self.most is None else min(count, self.most)

    def walk(self, end: Instant, *, most: int) -> bool:
        """Ask for the occurrences one by one; tell whether these are all."""
        most = most if self.most is None else min(most, self.most)
        occurrence, walked = self.trigger.first(self.after, until=end), 0
        while not isinstance(occurrence, NoOccurrence) and occurrence <= end and walked < most:
            # A jitter may carry the last ones past the end.
            if (due := self.trigger.due(occurrence)) <= end:
                self.minutes[due // MINUTE] += 1
            occurrence, walked = self.trigger.first(occurrence, until=end), walked + 1
        looked = occurrence.through if isinstance(occurrence, NoOccurrence) else occurrence - 1
        return looked >= end or walked == self.most

    def count(self, end: Instant, *, left: int, most: int) -> Iterator[tuple[range, int]]:
        """Yield the minutes of each hour, or of `most` longer stretches, and how many of the `left` occurrences they have."""
        hours = range((self.after + 1) // HOUR, end // HOUR + 1)
        size = HOUR * -(-len(hours) // max(1, most))
        for start in range(hours[0] * HOUR, end + 1, size):
            after, until = max(self.after, start - 1), min(end, start + size - 1)
            times = min(left, self.trigger.count(after, until) or 0)
            left -= times
            yield range((after + 1) // MINUTE, until // MINUTE + 1), times


def forecast_schedules(
    schedules: Iterable[StoredSchedule], *, start: Instant, days: int, tz: str
) -> Forecast:
    """Look ahead from `start`; this may take seconds."""
    check_whole(days, 1, MAX_DAYS, what="days")
    end, zone_name = start + days * DAY, zone(tz).key
    rules, left_out = shared_rules(schedules, start=start, end=end)
    minutes, counted, whole = load_by_minute(rules, start=start, end=end)
    place = ZoneInfo(zone_name)
    busiest = tuple(_busiest(rules, minutes, place))
    return Forecast(
        start=to_datetime(start).astimezone(place),
        end=to_datetime(end).astimezone(place),
        tz=tz,
        jobs=round(sum(minutes.values())),
        at_least=not whole,
        schedules=sum(len(rule.names) for rule in rules),
        hours=tuple(_by_hour(minutes, place)),
        busiest=busiest,
        peak=busiest[0].jobs if busiest else 0,
        advice=_advice(busiest),
        counted_only=tuple(sorted(name for rule in counted for name in rule.names)),
        left_out=left_out,
    )


def shared_rules(
    schedules: Iterable[StoredSchedule], *, start: Instant, end: Instant
) -> tuple[list[SharedRule], dict[str, str]]:
    """Return what will fire, and which schedules will not, with the reason."""
    rules: dict[tuple[str, Instant, int | None], SharedRule] = {}
    left_out: dict[str, str] = {}
    for schedule in schedules:
        resumes = schedule.paused_until
        if schedule.parked_at is not None:
            left_out[schedule.name] = "parked"
        elif schedule.paused_at is not None and (resumes is None or resumes > end):
            left_out[schedule.name] = "paused"
        elif isinstance(trigger := schedule_trigger(schedule), UnreadableTrigger):
            left_out[schedule.name] = f"it has {trigger.what} that cannot be read"
        else:
            after, most = max(start, resumes or 0), jobs_left(trigger, made=schedule.made)
            rule = SharedRule(trigger=trigger, after=after, most=most)
            rules.setdefault((schedule.trigger, after, most), rule).names.append(schedule.name)
    return list(rules.values()), left_out


def load_by_minute(
    rules: Sequence[SharedRule], *, start: Instant, end: Instant
) -> tuple[dict[int, float], list[SharedRule], bool]:
    """Return how many jobs fall due in each minute, the rules that were only counted, and whether this is all.

    Rules that come seldom are walked, the others are counted by the hour. What cannot be counted is walked as far as
    its share of the steps goes.
    """
    asked = [(rule.known(end), rule) for rule in rules]
    asked.sort(key=lambda one: (one[0] is None, one[0]))
    counted: list[SharedRule] = []
    stretches: Counter[range] = Counter()
    whole, left = True, MOST_STEPS
    minutes: dict[int, float] = dict.fromkeys(range(start // MINUTE, end // MINUTE + 1), 0.0)
    for number, (times, rule) in enumerate(asked):
        share = left // (len(asked) - number)
        if times is None or times <= share:
            whole = rule.walk(end, most=share) and whole
            left -= share if times is None else times
            for minute, each in rule.minutes.items():
                minutes[minute] += each * len(rule.names)
        else:
            counted.append(rule)
            left -= share
            # Thousands of rules share their hours, so that what is spread over one is added up first.
            for inside, jobs in rule.count(end, left=times, most=share):
                stretches[inside] += jobs * len(rule.names)
    for inside, jobs in stretches.items():
        for minute in inside:
            minutes[minute] += jobs / len(inside)
    return minutes, counted, whole


def _by_hour(minutes: dict[int, float], place: ZoneInfo) -> Iterator[HourLoad]:
    """Yield the hours of the wall clock, which need not begin with those of UTC."""
    offsets = zone(place.key)
    hours: defaultdict[int, float] = defaultdict(float)
    for minute, jobs in minutes.items():
        second = minute * 60
        offset = offsets.period_at(second).offset
        hours[(second + offset) // _HOUR_SECONDS * _HOUR_SECONDS - offset] += jobs
    for second, jobs in sorted(hours.items()):
        yield HourLoad(at=to_datetime(second * SECOND).astimezone(place), jobs=round(jobs))


def _busiest(rules: Sequence[SharedRule], minutes: dict[int, float], place: ZoneInfo) -> Iterator[MinuteLoad]:
    top = sorted((minute for minute in minutes if minutes[minute]), key=lambda one: (-minutes[one], one))
    for minute in top[:_MAX_LISTED]:
        names = sorted(name for rule in rules if minute in rule.minutes for name in rule.names)
        yield MinuteLoad(
            at=to_datetime(minute * MINUTE).astimezone(place),
            jobs=max(1, round(minutes[minute])),
            schedules=len(names),
            names=tuple(names[:_MAX_NAMED]),
        )


def _advice(busiest: Sequence[MinuteLoad]) -> str:
    if not busiest:
        return "Nothing falls due."
    text = f"The busiest minute has {counted(busiest[0].jobs, 'job')}."
    if busiest[0].schedules > 1:
        text += " H in place of fixed minutes, or a jitter, would spread them."
    return text


def _report(found: Forecast) -> Iterator[str]:
    more = "at least " if found.at_least else ""
    span = f"{found.start:%a %Y-%m-%d %H:%M} to {found.end:%a %Y-%m-%d %H:%M}, {found.tz}"
    yield f"{more}{counted(found.jobs, 'job')} of {counted(found.schedules, 'schedule')} from {span}"
    if found.jobs:
        yield ""
        yield from heat_map((hour.at, hour.jobs) for hour in found.hours)
        yield ""
        yield "Busiest minutes"
        for minute in found.busiest:
            names = list_with_total(minute.names, minute.schedules)
            yield f"  {minute.at:%a %Y-%m-%d %H:%M}  {counted(minute.jobs, 'job')}{names and f': {names}'}"
    yield ""
    yield found.advice
    if found.counted_only:
        yield f"Too often to be looked at one by one, and spread evenly over each hour: {short_list(found.counted_only, most=_MAX_NAMED)}."
    for why in sorted(set(found.left_out.values())):
        out = sorted(name for name, reason in found.left_out.items() if reason == why)
        yield f"Left out, {why}: {short_list(out, most=_MAX_NAMED)}."


_SHADES = ".:-=+*#@"
"""For an hour without jobs, then for more and more of them."""


def heat_map(hours: Iterable[tuple[datetime, int]]) -> Iterator[str]:
    """Yield a line for each day with its sum, and the legend; hours that are not given stay blank."""
    days: dict[date, Counter[int]] = {}
    for begins, jobs in hours:
        # Where clocks are set back, an hour of the wall clock comes twice.
        days.setdefault(begins.date(), Counter())[begins.hour] += jobs
    most = max(jobs for day in days.values() for jobs in day.values())
    step = max(1, -(-most // (len(_SHADES) - 1)))
    yield f"{'':16}{'    '.join(f'{hour:02}' for hour in range(0, 24, 3))}"
    for number, day in sorted(days.items()):
        shades = "".join(_SHADES[-(-day[hour] // step)] * 2 if hour in day else "  " for hour in range(24))
        yield f"{number:%a %Y-%m-%d}  {shades}  {day.total():,}"
    yield f"{'':16}jobs an hour: {_SHADES[0]} none, then {' '.join(_SHADES[1:])} in steps of {step:,}"
