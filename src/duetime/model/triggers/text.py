"""Triggers as text, the way schedules store them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final, cast, get_args

from duetime.errors import DuetimeError, InvalidOption, InvalidTrigger
from duetime.model.instants import SECOND, Instant
from duetime.model.job import OnCrash
from duetime.model.oddities import oddity
from duetime.model.schedule import Misfire, Overlap, StoredSchedule
from duetime.model.shown import shown
from duetime.model.terms import Terms
from duetime.model.triggers.base import Trigger
from duetime.model.triggers.specs import from_spec
from duetime.model.triggers.unreadable import Unreadable

_CHOICES: Final = {
    "overlap": get_args(Overlap),
    "misfire": get_args(Misfire),
    "on_crash": get_args(OnCrash),
}
_ONE_ANCHOR: Final[Instant] = 0
_OTHER_ANCHOR: Final[Instant] = (400 * 86_400 + 3_661) * SECOND + 1


def to_text(trigger: Trigger) -> str:
    """Return the spec of a trigger as JSON; equal rules, equal text."""
    return json.dumps(trigger.to_spec(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def from_text(text: str) -> Trigger:
    """Read what `to_text` wrote; raise `InvalidTrigger` for anything else."""
    try:
        spec = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidTrigger(f"a trigger is stored as JSON, not as {shown(text)}") from error
    try:
        return from_spec(spec)
    except DuetimeError:
        raise
    except Exception as error:
        # Whatever a row does to a reader stays with that row.
        raise InvalidTrigger(f"a trigger cannot be built from {shown(text)}: {shown(error)}") from error


def readable(text: str) -> Trigger | None:
    """Read what `to_text` wrote; `None` where a later version did, or one with extras that are not installed here."""
    try:
        return from_text(text)
    except ValueError:
        return None


def to_show(text: str) -> Trigger:
    """Read what `to_text` wrote; where it cannot be read, return what stands for it."""
    try:
        return from_text(text)
    except ValueError as error:
        return Unreadable(text, str(error))


def trigger_of(schedule: StoredSchedule, *, read: Callable[[str], Trigger] = to_show) -> Trigger:
    """Return the trigger of a schedule, by way of `read`; `Unreadable` with the reason if it cannot be fired here."""
    problem = oddity(schedule) or _unknown_word(schedule)
    if problem is None and schedule.terms is not None:
        try:
            Terms.from_text(schedule.terms)
        except InvalidOption as error:
            problem = str(error)
    return read(schedule.trigger) if problem is None else Unreadable(str(schedule.trigger), problem, "a row")


def _unknown_word(schedule: StoredSchedule) -> str | None:
    for name, known in _CHOICES.items():
        if (word := getattr(schedule, name)) not in known:
            return f"{name} is {shown(word)}, which this version does not know"
    return None


def same_rule(stored: Trigger, written: Trigger) -> bool:
    """Whether a stored trigger is one that was written, wherever the stored one counts from."""
    is_, one, other = (
        dict(_leaves(trigger.to_spec()))
        for trigger in (stored, written.anchored(_ONE_ANCHOR), written.anchored(_OTHER_ANCHOR))
    )
    # What differs from anchor to anchor may differ in the stored one, too.
    return is_.keys() == one.keys() and all(
        is_[path] == one[path] or one[path] != other[path] for path in is_
    )


def _leaves(spec: object, *path: object) -> Iterator[tuple[tuple[object, ...], object]]:
    """Yield each plain value in a spec with the way to it."""
    if not isinstance(spec, (dict, list)):
        yield path, spec
        return
    inner = cast("dict[object, object] | list[object]", spec)
    for key, value in inner.items() if isinstance(inner, dict) else enumerate(inner):
        yield from _leaves(value, *path, key)
