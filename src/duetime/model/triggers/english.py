"""Lists, names and times of day as English phrases, for the descriptions of triggers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
ORDINALS = ("", "first", "second", "third", "fourth", "fifth")

_MOST_TIMES = 4
_SHORTEST_RUN = 3


def join_words(words: Sequence[str], *, word: str = "and") -> str:
    """Join words with commas, and the last two with a word."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {word} {words[-1]}"


def names_in_words(values: Sequence[int], names: Sequence[str]) -> str:
    """Name the values, three or more in a row as a range."""
    if len(values) >= _SHORTEST_RUN and [*values] == [*range(values[0], values[-1] + 1)]:
        return f"{names[values[0]]} to {names[values[-1]]}"
    return join_words([names[value] for value in values])


def times_in_words(hours: Sequence[int], minutes: Sequence[int], seconds: Sequence[int]) -> str | None:
    """Say the times of day one by one, such as `at 09:00 and 17:00`; `None` if they are many."""
    if len(hours) * len(minutes) * len(seconds) > _MOST_TIMES:
        return None
    clock = "{:02}:{:02}" if [*seconds] == [0] else "{:02}:{:02}:{:02}"
    return f"at {join_words([clock.format(*time) for time in product(hours, minutes, seconds)])}"
