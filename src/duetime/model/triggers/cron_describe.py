"""Says a cron rule in English."""

from __future__ import annotations

from itertools import product

from duetime.model.triggers.cron_fields import Days, Fields, positions

_MOST_TIMES = 4
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_ORDINALS = ("first", "second", "third", "fourth", "fifth")
_ALL_DATES = (1 << 32) - 2
_ALL_WEEKDAYS = (1 << 7) - 1
_SHORTEST_RUN = 3
_MINUTES = 60


def describe(fields: Fields) -> str:
    """Return one English phrase, such as `at 09:00 on Monday to Friday in May`."""
    days = _days(fields.days)
    months = "" if fields.months == (1 << 13) - 2 else f" in {_names(fields.months >> 1, _MONTHS)}"
    time = _time(fields)
    if not days and not months and time.startswith("at ") and " of " not in time:
        days = " every day"
    return f"{time}{days}{months}"


def _time(fields: Fields) -> str:
    seconds, minutes, hours = positions(fields.seconds), positions(fields.minutes), positions(fields.hours)
    with_seconds = seconds != [0]
    if len(seconds) * len(minutes) * len(hours) <= _MOST_TIMES:
        clock = "{:02}:{:02}:{:02}" if with_seconds else "{:02}:{:02}"
        return f"at {_join([clock.format(*time) for time in product(hours, minutes, seconds)])}"
    if not with_seconds:
        return _inner(minutes, "minute", 60) + _outer(hours, "hour", 24, told=_is_stride(minutes, 60))
    told = _is_stride(seconds, 60)
    outer = _outer(minutes, "minute", 60, told=told)
    told = (told and not outer) or len(minutes) == _MINUTES
    return _inner(seconds, "second", 60) + outer + _outer(hours, "hour", 24, told=told)


def _inner(values: list[int], unit: str, size: int) -> str:
    if _is_stride(values, size):
        step = size // len(values)
        return f"every {unit}" if step == 1 else f"every {step} {unit}s"
    return f"at {_plural(values, unit)} {_runs(values)}"


def _outer(values: list[int], unit: str, size: int, *, told: bool) -> str:
    if len(values) == size:
        return "" if told else f" of every {unit}"
    return f" of {_plural(values, unit)} {_runs(values)}"


def _is_stride(values: list[int], size: int) -> bool:
    """Tell whether the values go round evenly, beginning at zero."""
    return len(values) > 1 and size % len(values) == 0 and values == list(range(0, size, size // len(values)))


def _days(days: Days) -> str:
    dates: list[str] = []
    if plain := positions(days.dates):
        dates.append(f"{_plural(plain, 'day')} {_runs(plain)} of the month")
    if days.last:
        dates.append("the last day of the month")
    if days.last_workday:
        dates.append("the last Monday-to-Friday day of the month")
    dates += [f"the Monday-to-Friday day nearest to day {day} of the month" for day in positions(days.near)]
    weekdays = [_names(days.weekdays, _WEEKDAYS)] if days.weekdays else []
    for position in positions(days.nth):
        week, weekday = divmod(position, 7)
        weekdays.append(f"the {_ORDINALS[week]} {_WEEKDAYS[weekday]} of the month")
    weekdays += [f"the last {_WEEKDAYS[weekday]} of the month" for weekday in positions(days.final)]
    if days.either:
        return f" on {_join(dates + weekdays, word='or')}"
    told: list[str] = []
    if days.dates != _ALL_DATES:
        told.append(_join(dates, word="or"))
    if days.weekdays != _ALL_WEEKDAYS:
        told.append(_join(weekdays, word="or"))
    return f" on {' if also on '.join(told)}" if told else ""


def _names(mask: int, names: tuple[str, ...]) -> str:
    values = positions(mask)
    if len(values) >= _SHORTEST_RUN and values == list(range(values[0], values[-1] + 1)):
        return f"{names[values[0]]} to {names[values[-1]]}"
    return _join([names[value] for value in values])


def _runs(values: list[int]) -> str:
    """Join numbers, with three or more in a row told as a range."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    told: list[str] = []
    for run in runs:
        told += [f"{run[0]} to {run[-1]}"] if len(run) >= _SHORTEST_RUN else [str(value) for value in run]
    return _join(told)


def _plural(values: list[int], unit: str) -> str:
    return unit if len(values) == 1 else f"{unit}s"


def _join(words: list[str], *, word: str = "and") -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {word} {words[-1]}"
