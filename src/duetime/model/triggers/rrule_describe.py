"""Says a recurrence rule in English."""

from __future__ import annotations

from itertools import product

from duetime.model.triggers.rrule_text import Rule

_UNITS = {"YEARLY": "year", "MONTHLY": "month", "WEEKLY": "week", "DAILY": "day", "HOURLY": "hour"}
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_ORDINALS = ("", "first", "second", "third", "fourth", "fifth")
_MOST_TIMES = 4


def describe(rule: Rule) -> str:
    """Return one English phrase, such as `every 2 weeks on Monday and Friday at 09:00`; the rule is complete."""
    unit = _UNITS[rule.frequency]
    text = f"every {unit}" if rule.interval == 1 else f"every {rule.interval} {unit}s"
    values = rule.values
    if months := values.get("BYMONTH"):
        text += f" in {_join([_MONTHS[month - 1] for month in months])}"
    if weeks := values.get("BYWEEKNO"):
        text += f" in {_join([_numbered('week', week, 'year') for week in weeks])}"
    days = [_numbered("day", day, "year") for day in values.get("BYYEARDAY", ())]
    days += [_numbered("day", day, "month") for day in values.get("BYMONTHDAY", ())]
    told = [_join(days)] if days else []
    if rule.days:
        told.append(
            _join([_WEEKDAYS[day] if not nth else _nth(nth, _WEEKDAYS[day]) for nth, day in rule.days])
        )
    if told:
        text += f" on {' if also on '.join(told)}"
    text += _times(rule)
    if chosen := values.get("BYSETPOS"):
        text += f", of these only {_join([_nth(position, 'one') for position in chosen])}"
    return text


def _times(rule: Rule) -> str:
    hours, minutes, seconds = (rule.values.get(name, ()) for name in ("BYHOUR", "BYMINUTE", "BYSECOND"))
    if hours and len(hours) * len(minutes) * len(seconds) <= _MOST_TIMES:
        clock = "{:02}:{:02}:{:02}" if seconds != (0,) else "{:02}:{:02}"
        return f" at {_join([clock.format(*time) for time in product(hours, minutes, seconds)])}"
    text = f" at minute {_numbers(minutes)}" if minutes else ""
    if seconds and seconds != (0,):
        text += f" at second {_numbers(seconds)}"
    return f"{text} of hour {_numbers(hours)}" if hours else text


def _numbered(what: str, number: int, whole: str) -> str:
    if number == -1:
        return f"the last {what} of the {whole}"
    return (
        f"{what} {number} of the {whole}" if number > 0 else f"{what} {-number} from the end of the {whole}"
    )


def _nth(number: int, what: str) -> str:
    order = _ORDINALS[abs(number)] if abs(number) < len(_ORDINALS) else f"number {abs(number)}"
    if number == -1:
        return f"the last {what}"
    return f"the {order} {what}" if number > 0 else f"the {order} last {what}"


def _numbers(values: tuple[int, ...]) -> str:
    return _join([str(value) for value in values])


def _join(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
