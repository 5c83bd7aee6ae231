"""Time zones as periods of constant UTC offset, and the way from wall times to instants."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import accumulate, repeat
from zoneinfo import ZoneInfo, available_timezones

from duetime.errors import InvalidZone
from duetime.model.text import shown
from duetime.model.time import EARLIEST, EPOCH, LATEST, SECOND, Instant, from_datetime

DAY_SECONDS = 86_400
EPOCH_DAY = EPOCH.toordinal()

_BLOCK = 366 * DAY_SECONDS
# No zone has changed its offset twice within six days since 1970, so that samples this close miss nothing.
_SAMPLE = timedelta(days=6)
_QUARTER = 900
_WALL_EPOCH = EPOCH.replace(tzinfo=None)
# More than the hundred years that a search may look ahead.
_BLOCKS_KEPT = 128
_LONGEST_KEY = 64
_ALIKE = 0.75
"""How much of a wrong name must be in a right one; less would take PST for MST."""
_OFFSET = re.compile(r"(?:UTC|GMT)? ?([+-]\d{1,2})(?::?00)?", re.ASCII)
_HOURS_FROM_UTC = range(-12, 15)
# Those that are names of zones as well, such as EST and CET, are left out.
_ABBREVIATIONS = {
    abbreviation: name
    for name, abbreviations in {
        "Africa/Johannesburg": "sast",
        "Africa/Lagos": "wat",
        "Africa/Maputo": "cat",
        "Africa/Nairobi": "eat",
        "America/Anchorage": "akst akdt",
        "America/Chicago": "cst cdt",
        "America/Denver": "mdt",
        "America/Halifax": "ast adt",
        "America/Los_Angeles": "pst pdt",
        "America/New_York": "edt",
        "America/Sao_Paulo": "brt",
        "Asia/Dubai": "gst",
        "Asia/Hong_Kong": "hkt",
        "Asia/Jakarta": "wib",
        "Asia/Karachi": "pkt",
        "Asia/Kolkata": "ist",
        "Asia/Manila": "pht",
        "Asia/Seoul": "kst",
        "Asia/Singapore": "sgt",
        "Asia/Tokyo": "jst",
        "Australia/Adelaide": "acst acdt",
        "Australia/Perth": "awst",
        "Australia/Sydney": "aest aedt",
        "Europe/Athens": "eest",
        "Europe/Berlin": "cest mez mesz",
        "Europe/Lisbon": "west",
        "Europe/London": "bst",
        "Europe/Moscow": "msk",
        "Pacific/Auckland": "nzst nzdt",
        "UTC": "z",
    }.items()
    for abbreviation in abbreviations.split()
}


@dataclass(frozen=True, slots=True)
class OffsetPeriod:
    """Seconds `start <= t < end` of real time in which the wall clock shows `t + offset`.

    `seen` is the first wall second that no clock in the zone had shown before `start`:
    it lies after `start + offset` when the clock was set back, and before it when the clock was set forward.
    """

    start: int
    end: int
    offset: int
    seen: int


class Zone:
    """The offset changes of one time zone, found once per year and kept."""

    __slots__ = ("_blocks", "_info", "key")

    def __init__(self, info: ZoneInfo) -> None:
        self.key = info.key
        self._info = info
        self._blocks: dict[int, tuple[list[int], list[OffsetPeriod]]] = {}

    def period_at(self, second: int) -> OffsetPeriod:
        """Return the period around `second`; long ones come in pieces of about a year."""
        number = second // _BLOCK
        block = self._blocks.get(number)
        if block is None:
            if len(self._blocks) >= _BLOCKS_KEPT:
                self._blocks.clear()
            block = self._blocks[number] = self._find(number * _BLOCK, (number + 1) * _BLOCK)
        starts, periods = block
        return periods[bisect_right(starts, second) - 1]

    def _find(self, low: int, high: int) -> tuple[list[int], list[OffsetPeriod]]:
        # Looks back a little, so that a clock set back just before the block still counts as such inside it.
        begin = _WALL_EPOCH + timedelta(0, low) - _SAMPLE
        samples = timedelta(0, high - low) // _SAMPLE + 3
        walls = [*accumulate(repeat(_SAMPLE, samples), datetime.__add__, initial=begin)]
        # zoneinfo tells the offset of a wall time many times as fast as that of an instant.
        offsets = [*map(self._info.utcoffset, walls)]
        found = zip(walls, offsets, offsets[1:], strict=False)
        changes = dict(self._change(wall, old, new) for wall, old, new in found if old != new)
        seen, offset = _seconds(begin - _WALL_EPOCH), _seconds(offsets[0])
        start = seen - offset
        periods: list[OffsetPeriod] = []
        for end in sorted({low, high, *(change for change in changes if change < high)}):
            periods.append(OffsetPeriod(start=start, end=end, offset=offset, seen=seen))
            seen = max(seen, end + offset)
            start, offset = end, changes.get(end, offset)
        return [piece.start for piece in periods], periods

    def _change(self, wall: datetime, old: timedelta | None, new: timedelta | None) -> tuple[int, int]:
        """Return the instant of the change between a sample and the next, and the offset from there on."""

        def changed(second: int) -> bool:
            return self._info.utcoffset(wall + timedelta(0, second)) != old

        # Hardly a clock was ever changed but on a quarter of an hour.
        quarters = range(_QUARTER, _seconds(_SAMPLE) + 1, _QUARTER)
        second = quarters[bisect_left(quarters, True, key=changed)]  # noqa: FBT003
        if changed(second - 1):
            second = bisect_left(range(second), True, key=changed)  # noqa: FBT003
        # What a gap swallows has the old offset, and so has what is shown twice.
        return _seconds(wall - _WALL_EPOCH) + second - max(_seconds(old), _seconds(new)), _seconds(new)


def _seconds(delta: timedelta | None) -> int:
    return 0 if delta is None else delta.days * DAY_SECONDS + delta.seconds


def zone(key: object) -> Zone:
    """Return the zone called `key`; raise `InvalidZone`, with the name that may have been meant, if there is none."""
    name = key.key if isinstance(key, ZoneInfo) else key
    if not isinstance(name, str) or not name:
        raise InvalidZone(f"a time zone is a name such as 'Europe/Berlin', not {shown(key)}")
    try:
        return _load_zone(name)
    except (KeyError, ValueError, OSError):
        raise InvalidZone(f"unknown time zone {shown(name)}; {zone_hint(name)}") from None


def zone_hint(key: str) -> str:
    """Say which zone may have been meant by a name that is none."""
    written = key[:_LONGEST_KEY].strip()
    if (match := _OFFSET.fullmatch(written.upper())) and (hours := int(match[1])) in _HOURS_FROM_UTC:
        # The signs of these names are those of POSIX, which counts to the west.
        return f"did you mean 'Etc/GMT{-hours:+}', which is UTC{hours:+}?"
    names = sorted(available_timezones())
    known = {name.rpartition("/")[2].casefold(): name for name in names}
    known |= {name.casefold(): name for name in names} | _ABBREVIATIONS
    near = difflib.get_close_matches(written.casefold().replace(" ", "_"), known, n=1, cutoff=_ALIKE)
    return (
        f"did you mean {known[near[0]]!r}?" if near else "use an IANA name such as 'Europe/Berlin' or 'UTC'"
    )


@cache
def _load_zone(key: str) -> Zone:
    return Zone(ZoneInfo(key))


def first_after_wall(
    place: Zone,
    instant: Instant,
    first_from: Callable[[int], int | None],
    *,
    begun: Instant = EARLIEST,
    repeats: bool = False,
) -> Instant | None:
    """Return the first instant after `instant` at which the clock shows a wall second that `first_from` finds.

    As with cron: a wall time that a change of the clock swallows comes once, right after the gap; one that comes
    twice counts once, the first time since `begun`. With `repeats` the clock itself is followed: what is swallowed
    does not come, and what comes twice counts twice.
    """
    second = instant // SECOND
    period = place.period_at(second)
    wall = second + 1 + period.offset
    # What the clock showed before the rule began does not count as shown.
    if not repeats and place.period_at(begun // SECOND).seen != period.seen:
        wall = max(wall, period.seen)
    match = first_from(wall)
    while match is not None and match - period.offset >= period.end:
        if period.end * SECOND > LATEST:
            return None
        # Nothing lies between a change and the match, whose clock is less than a day ahead of UTC or behind it. But what
        # the clock has shown may come again if it is set back soon.
        leap = not repeats or period.end > second + 2 * DAY_SECONDS
        period = place.period_at(max(period.end, match - DAY_SECONDS) if leap else period.end)
        opening = period.start + period.offset
        if repeats and (opening < period.seen or match < opening):
            match = first_from(opening)
    if match is None:
        return None
    found = max(match - period.offset, period.start) * SECOND
    return found if found <= LATEST else None


def instant_of_wall(place: Zone, wall: int) -> Instant:
    """Return when the clock first reaches or passes a wall second."""
    period = place.period_at(wall - DAY_SECONDS)
    while wall - period.offset >= period.end:
        period = place.period_at(period.end)
    return max(wall - period.offset, period.start) * SECOND


def wall_second_at(place: Zone, instant: Instant) -> int:
    """Return the wall second that the clock shows at `instant`."""
    second = instant // SECOND
    return second + place.period_at(second).offset


def shown_wall(wall: int) -> datetime:
    """Return a wall second as a datetime to be formatted."""
    return EPOCH + timedelta(seconds=wall)


def zone_name_of(tz: str | ZoneInfo | None, start: datetime | None) -> str:
    """Return the name of a zone: as given, or that of `start`, or UTC."""
    if tz is not None:
        return zone(tz).key
    info = start.tzinfo if isinstance(start, datetime) else None
    return info.key if isinstance(info, ZoneInfo) else "UTC"


def read_start(start: datetime, place: Zone) -> tuple[Instant, int]:
    """Return when the clock reaches the wall time of `start`, and how many seconds it has been set past it by then.

    These are more than none only where a change of the clock in `place` swallows the wall time that was written.
    """
    instant = from_datetime(start, what="start")
    second, fraction = divmod(instant, SECOND)
    period = place.period_at(second)
    own = start.tzinfo
    if not isinstance(own, ZoneInfo) or own.key != place.key:
        return instant, 0
    written = (start.replace(tzinfo=UTC) - EPOCH) // timedelta(seconds=1)
    past = second + period.offset - written
    if not past:
        return instant, 0
    # Python reads such a time by the offset before the gap or, with fold=1, by the one after it.
    opening = period.start if past > 0 else period.end
    return opening * SECOND + fraction, opening + place.period_at(opening).offset - written
