"""Cron rules told in the words that people use."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model.text import (
    MONTHS,
    ORDINALS,
    WEEKDAYS,
    Run,
    is_long,
    join_words,
    list_in_words,
    ordinal,
    runs_of,
    times_in_words,
)
from duetime.model.triggers.cron_fields import (
    ALL_YEARS,
    FIRST_BACK,
    LAST_DAY,
    LAST_WEEK,
    LONGEST_MONTHS,
    WEEK,
    CronDays,
    CronFields,
    bit_positions,
)

_SECONDS = _MINUTES = 60
_HOURS = 24
_ALL_DATES = (1 << 32) - 2
_ALL_WEEKDAYS = (1 << WEEK) - 1
_ALL_MONTHS = (1 << 13) - 2
_DAYS_BY_NAME: dict[tuple[int, ...], str] = {(0, 1, 2, 3, 4): "weekdays", (5, 6): "weekends"}
_SHORTEST_SERIES = 5
_MOST_WINDOWS = 2
_MOST_DATES = 4


def describe_cron(fields: CronFields) -> str:
    """Return one English phrase, such as `at 09:00 on weekdays in May`."""
    time = _time(fields)
    is_clock = time.startswith("at ") and " of " not in time
    years = "" if fields.years == ALL_YEARS else _years(bit_positions(fields.years))
    if dates := _dates_of_the_year(fields):
        year = f" {years}" if years.isdecimal() else ""
        on = f"on {join_words([date + year for date in dates])}"
        text = f"{on} {time}" if is_clock else f"{time} {on}"
        return text if year or not years else f"{text} in {years}"
    months = (
        "" if fields.months == _ALL_MONTHS else list_in_words(bit_positions(fields.months), _month, size=12)
    )
    days = _days(fields.days, months or "the month")
    if months and (fields.days.either or f" of {months}" not in days):
        days += f" in {months}"
    if years:
        days += f" in {years}"
    return f"{time}{days or ' every day' * is_clock}"


def _time(fields: CronFields) -> str:
    seconds, minutes, hours = map(bit_positions, (fields.seconds, fields.minutes, fields.hours))
    step, whole = _stride(minutes, _MINUTES), seconds == [0]
    if whole and step is None and (told := _by_hours(minutes, hours, floating=fields.floating)) is not None:
        return told
    if not (whole and step and fields.floating) and (times := times_in_words(hours, minutes, seconds)):
        return times
    if not whole:
        return _by_seconds(seconds, minutes, hours, floating=fields.floating)
    if step is None:
        return f"at {_numbers(minutes, 'minute')} of {_numbers(hours, 'hour')}"
    return f"{_each(step, 'minute')}{_within(hours, floating=fields.floating)}"


def _by_seconds(seconds: list[int], minutes: list[int], hours: list[int], *, floating: bool) -> str:
    step = _stride(seconds, _SECONDS)
    text = f"at {_numbers(seconds, 'second')}" if step is None else _each(step, "second")
    if len(minutes) == _MINUTES:
        return f"{text}{' of every minute' * (step is None)}{_within(hours, floating=floating)}"
    hour = "every hour" if len(hours) == _HOURS else _numbers(hours, "hour")
    return f"{text} of {_numbers(minutes, 'minute')} of {hour}"


def _by_hours(minutes: list[int], hours: list[int], *, floating: bool) -> str | None:
    """Tell what comes at the same minutes of hours that follow each other evenly; `None` if they do not."""
    if floating and (step := _stride(hours, _HOURS)):
        return _each(step, "hour") + ("" if minutes == [0] else f" at {_numbers(minutes, 'minute')}")
    if len(minutes) > 1:
        return None
    if step := _series(hours):
        return f"{_each(step, 'hour')} {_windows([(hours[0], hours[-1])], minutes[0], minutes[0])}"
    runs = runs_of(hours, _HOURS)
    long = all(is_long(run, _HOURS) for run in runs)
    return f"hourly {_windows(runs, minutes[0], minutes[0])}" if long and len(runs) <= _MOST_WINDOWS else None


def _within(hours: list[int], *, floating: bool) -> str:
    """Tell the hours within which something recurs; all of them go without saying if they follow the clock."""
    if floating and len(hours) == _HOURS:
        return ""
    runs = runs_of(hours, _HOURS)
    return f" {_windows(runs, 0, 59)}" if len(runs) <= _MOST_WINDOWS else f" of {_numbers(hours, 'hour')}"


def _windows(runs: Sequence[Run], opening: int, closing: int) -> str:
    return join_words([f"from {first:02}:{opening:02} to {last:02}:{closing:02}" for first, last in runs])


def _dates_of_the_year(fields: CronFields) -> list[str]:
    """Return the dates, such as `1 January`, if the rule comes on one day of a few months; else none."""
    days, dates, months = fields.days, bit_positions(fields.days.dates), bit_positions(fields.months)
    if (
        days.near
        or days.nth
        or days.weekdays != _ALL_WEEKDAYS
        or len(dates) != 1
        or len(months) > _MOST_DATES
    ):
        return []
    return [f"{dates[0]} {_month(month)}" for month in months if dates[0] <= LONGEST_MONTHS[month]]


def _days(days: CronDays, month: str) -> str:
    dates = f"{join_words(_dates(days))} of {month}" if days.dates or days.near else ""
    weekdays = _weekdays(days.weekdays)
    for position in bit_positions(days.nth):
        week, weekday = divmod(position, WEEK)
        order = "last" if week == LAST_WEEK else ORDINALS[week + 1]
        weekdays.append(f"the {order} {WEEKDAYS[weekday - 1]} of {month}")
    if days.either:
        return f" on {dates} or on {join_words(weekdays)}"
    any_date, any_weekday = days.dates & _ALL_DATES == _ALL_DATES, days.weekdays == _ALL_WEEKDAYS
    named = [dates] * (not any_date) + [join_words(weekdays)] * (not any_weekday)
    return f" on {' if also on '.join(named)}" if named else ""


def _dates(days: CronDays) -> list[str]:
    found: list[str] = []
    if plain := bit_positions(days.dates & _ALL_DATES):
        ends = f"from the {ordinal(plain[0])} to the {ordinal(plain[-1])}"
        step, listed = _series(plain), f"the {list_in_words(plain, ordinal)}"
        found.append(f"every {ordinal(step)} day {ends}" if step else listed)
    found += [_from_end(position) for position in bit_positions(days.dates & ~_ALL_DATES)]
    for position in bit_positions(days.near):
        day = f"the {ordinal(position)}" if position < FIRST_BACK else _from_end(position)
        found.append("the last weekday" if position == LAST_DAY else f"the weekday nearest to {day}")
    return found


def _from_end(position: int) -> str:
    return "the last day" if position == LAST_DAY else f"the {ordinal(LAST_DAY + 1 - position)}-to-last day"


def _weekdays(mask: int) -> list[str]:
    days = tuple(sorted((day - 1) % WEEK for day in bit_positions(mask)))
    if not days:
        return []
    return [_DAYS_BY_NAME.get(days) or list_in_words(days, WEEKDAYS.__getitem__, size=WEEK)]


def _month(number: int) -> str:
    return MONTHS[number - 1]


def _years(years: list[int]) -> str:
    step = _series(years)
    return f"every {ordinal(step)} year from {years[0]} to {years[-1]}" if step else list_in_words(years, str)


def _each(step: int, unit: str) -> str:
    return f"every {unit}" if step == 1 else f"every {step} {unit}s"


def _numbers(values: list[int], unit: str) -> str:
    if step := _series(values):
        return f"every {ordinal(step)} {unit} from {values[0]} to {values[-1]}"
    return f"{unit if len(values) == 1 else f'{unit}s'} {list_in_words(values, str)}"


def _stride(values: list[int], size: int) -> int | None:
    """Return the step of values that go round evenly, beginning at zero; one value does not."""
    step = size // len(values)
    return step if len(values) > 1 and values == [*range(0, size, step)] and not size % step else None


def _series(values: list[int]) -> int | None:
    """Return the step between values that are too many to be told one by one; `None` if they are not, or uneven."""
    step = values[1] - values[0] if len(values) >= _SHORTEST_SERIES else 1
    return step if step > 1 and values == [*range(values[0], values[-1] + 1, step)] else None
