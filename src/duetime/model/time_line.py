"""Which stretches of time are asked for, and whether sums of them are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from duetime.errors import InvalidOption, InvalidTime
from duetime.model.statistics import KEPT, LENGTH, Grain, Kind, SumsKey
from duetime.model.time import DAY, HOUR, MINUTE, Instant, Micros, describe_duration, in_words

_STEPS: Final[Sequence[Micros]] = (MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 6 * HOUR, DAY)
"""What a step is chosen from."""
_FEW: Final = 100
"""How many points a step is chosen for, at most."""
_MOST: Final = 1_500
"""How many points there may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLine:
    """Points of time, a step apart; days are those of UTC."""

    since: Instant
    until: Instant
    """The end of the last step."""
    step: Micros
    grain: Grain
    """What the sums are made of that are read."""

    @property
    def starts(self) -> range:
        """Where each step begins."""
        return range(self.since, self.until, self.step)

    def ids(self, kind: Kind, name: str) -> tuple[str, str]:
        """Return the first id of the sums that are asked for, and the one behind the last."""
        first, past = (SumsKey(kind.value, self.grain.value, name, at).id for at in (self.since, self.until))
        return first, past


def time_line(
    *, since: Instant, until: Instant | None, step: Micros | None, now: Instant, kind: Kind
) -> TimeLine:
    """Check what is asked for; raises `InvalidTime` or `InvalidOption`. Without a step, take one for about a hundred points."""
    until = now if until is None else min(until, now)
    if since >= now:
        raise InvalidTime(f"since lies in the future: it is {in_words(since)}, and now it is {in_words(now)}")
    if until <= since:
        raise InvalidTime(f"until is {in_words(until)}, which is not after since, {in_words(since)}")
    if step is None:
        fitting = [one for one in _STEPS if until - since <= _FEW * one and _is_kept(one, kind, now - since)]
        step = fitting[0] if fitting else DAY
    if step < MINUTE or step % MINUTE:
        raise InvalidOption(f"step must be whole minutes, not {describe_duration(step)}")
    if not _is_kept(step, kind, now - since):
        raise InvalidOption(_not_kept(step, kind, now - since))
    # What ends at this very moment belongs to the step that begins with it.
    first, last = since - since % step, until if until == now else until - 1
    past = last - last % step + step
    if (past - first) // step > _MOST:
        raise InvalidOption(
            f"a step of {describe_duration(step)} makes more than {_MOST:,} points; take a longer one"
        )
    return TimeLine(since=first, until=past, step=step, grain=_grain_of(step))


def _grain_of(step: Micros) -> Grain:
    """Return the longest stretches that make up a step."""
    return next(grain for grain in reversed(Grain) if step % LENGTH[grain] == 0)


def _kept(kind: Kind) -> Mapping[Grain, Micros]:
    return {grain: kept for grain, kept in KEPT.items() if (kind, grain) != (Kind.SCHEDULE, Grain.MINUTE)}


def _is_kept(step: Micros, kind: Kind, age: Micros) -> bool:
    return age <= _kept(kind).get(_grain_of(step), 0)


def _not_kept(step: Micros, kind: Kind, age: Micros) -> str:
    kept = _kept(kind)
    told = ", ".join(f"{grain.name.lower()}s for {describe_duration(time)}" for grain, time in kept.items())
    fine = [describe_duration(LENGTH[grain]) for grain, time in kept.items() if age <= time]
    what = "a schedule" if kind is Kind.SCHEDULE else "what is kept"
    fix = f"take whole steps of {fine[0]}, or a later since" if fine else "take a later since"
    return (
        f"a step of {describe_duration(step)} from {describe_duration(age - age % MINUTE)} ago is finer than {what}"
        f"{' has' if kind is Kind.SCHEDULE else ''}: {told}; {fix}"
    )
