"""Figures over time: what became of runs, and how long they waited and took, as sums that can be added up."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias, cast

from duetime.model.job import Claim, NewJob
from duetime.model.outcome import SNOOZED, Settlement
from duetime.model.states import State
from duetime.model.time import DAY, HOUR, MINUTE, Instant, Micros

Histogram: TypeAlias = dict[int, int]
"""How many durations fell into each bucket, and under `TOTAL` how long they were together, in microseconds."""
TOTAL: Final = -1
ERROR: Final = 1 / 16
"""How far a percentile may be from the true one, as a part of it."""
_STEPS: Final = 8
"""How many buckets there are from one power of two to the next; below twice as many microseconds each has its own."""
_EXACT: Final = 2 * _STEPS
_OWN_WORDS: Final = frozenset({SNOOZED, "interrupted", "lost"})
"""What became of tries that did not end their job and are no failures."""


def tally(histogram: Histogram, duration: Micros) -> None:
    """Count a duration; one that a clock which was set back makes negative counts as none."""
    if duration < _EXACT:
        bucket = duration = max(duration, 0)
    else:
        shift = duration.bit_length() - 4
        bucket = _STEPS * shift + (duration >> shift)
    histogram[bucket] = histogram.get(bucket, 0) + 1
    histogram[TOTAL] = histogram.get(TOTAL, 0) + duration


def middle(bucket: int) -> Micros:
    """Return the duration that a bucket stands for."""
    if bucket < _EXACT:
        return bucket
    shift = bucket // _STEPS - 1
    return ((_STEPS + bucket % _STEPS) << shift) + (1 << shift) // 2


def size(histogram: Histogram) -> int:
    """Return how many durations were counted."""
    return sum(count for bucket, count in histogram.items() if bucket >= 0)


def percentile(histogram: Histogram, share: float) -> Micros | None:
    """Return the duration that this share of all does not exceed, give or take `ERROR`; `None` if there are none."""
    left, bucket = share * size(histogram), None
    for bucket in sorted(key for key in histogram if key >= 0):
        left -= histogram[bucket]
        if left <= 0:
            break
    return None if bucket is None else middle(bucket)


@dataclass(slots=True)
class Sums:
    """What became of runs, and how long they waited, took, and were late."""

    outcomes: dict[str, int] = field(default_factory=dict[str, int])
    """How many jobs succeeded, failed, were cancelled or skipped, and how many tries ended otherwise."""
    wait: Histogram = field(default_factory=Histogram)
    """From the time a run was due to its start."""
    run: Histogram = field(default_factory=Histogram)
    """From its start to its end."""
    lateness: Histogram = field(default_factory=Histogram)
    """From the occurrence of a schedule to the start."""

    def plus(self, other: Sums) -> None:
        """Take in what others have counted."""
        for mine, theirs in zip(self.values(), other.values(), strict=True):
            for key, count in theirs.items():
                mine[key] = mine.get(key, 0) + count

    def values(self) -> tuple[dict[Any, int], ...]:
        """Return what is stored."""
        return self.outcomes, self.wait, self.run, self.lateness

    @classmethod
    def of(cls, stored: object) -> Sums:
        """Read what was stored; raises `ValueError`, `TypeError` or `AttributeError` if it cannot be read."""
        outcomes, *histograms = _checked(stored)
        return cls(dict(outcomes), *map(_with_numbers, histograms))


def _checked(stored: object) -> list[dict[str, int]]:
    """Return counts of four things; raises if it is something else that was stored."""
    found = cast("list[dict[str, int]]", stored)
    # To add them up is the quickest way to see that all are numbers.
    if len([sum(part.values()) for part in found]) != _COUNTED:
        raise ValueError("these are no sums")
    return found


def _with_numbers(histogram: Mapping[str, int]) -> Histogram:
    return {int(bucket): count for bucket, count in histogram.items() if bucket.removeprefix("-").isdecimal()}


def word_of(change: Settlement) -> str | None:
    """Return what is counted of a change: the final state of the job, or how a try ended; `None`: the claim was given back."""
    if change.state is not State.PENDING:
        return change.state.value
    if change.attempt is None or change.attempt in _OWN_WORDS:
        return change.attempt
    return "retried"


class Grain(StrEnum):
    """How long the stretches of time are whose sums are kept."""

    MINUTE = "m"
    HOUR = "h"
    DAY = "d"


LENGTH: Final[Mapping[Grain, Micros]] = {Grain.MINUTE: MINUTE, Grain.HOUR: HOUR, Grain.DAY: DAY}
KEPT: Final[Mapping[Grain, Micros]] = {Grain.MINUTE: 2 * DAY, Grain.HOUR: 15 * DAY, Grain.DAY: 400 * DAY}
PART: Final = "p"
"""The grain of what a worker has written and no one has merged yet."""
MERGED: Final = "o"
"""The grain of a part whose sums are in rows; it stays for a while, so that no late repetition adds it again."""
_REPEATABLE: Final[Micros] = 10 * MINUTE


_COUNTED: Final = 4
"""How many things are counted: outcomes, wait, run time and lateness."""
_UNREADABLE: Final = (ValueError, TypeError, AttributeError, RecursionError)


class Kind(StrEnum):
    """Of what sums are kept."""

    ALL = "all"
    TASK = "task"
    QUEUE = "queue"
    SCHEDULE = "schedule"


class SumsKey(NamedTuple):
    """Whose sums, and of which time."""

    kind: str
    grain: str
    name: str
    start: Instant

    @property
    def id(self) -> str:
        """What the sums are stored under: those of one thing lie next to each other, in order of time."""
        return f"{self.kind}|{self.grain}|{self.name}|{self.start:016}"


def statistics_end(now: Instant) -> dict[str, Instant]:
    """Return what is not kept any longer: of each grain, what begins before this."""
    before = {grain.value: now - kept for grain, kept in KEPT.items()}
    return before | {PART: before[Grain.MINUTE], MERGED: now - _REPEATABLE}


class StatisticsRow(NamedTuple):
    """Sums as they are stored, or a part."""

    id: str
    kind: str
    grain: str
    name: str
    start: Instant
    body: str
    """JSON."""


class StatisticsParts(NamedTuple):
    """Parts that wait to be merged, oldest first."""

    folds: int
    """How often parts were merged before."""
    bodies: Mapping[str, str]


class StoredStatistics(NamedTuple):
    """What is stored of some things, and all parts, each at the same moment."""

    rows: Sequence[tuple[str, str]]
    """Ids and bodies."""
    parts: Sequence[str]


class CellKey(NamedTuple):
    """What is summed up together in a worker: runs that ended in a minute, of one task, queue and schedule."""

    minute: Instant
    task: str
    queue: str
    schedule: str | None

    def sums_keys(self, grains: Iterable[Grain] = Grain) -> Iterator[SumsKey]:
        """Yield the keys of the sums that a cell belongs to; there are no minutes of schedules."""
        things = {Kind.ALL: "", Kind.TASK: self.task, Kind.QUEUE: self.queue, Kind.SCHEDULE: self.schedule}
        for grain in grains:
            start = self.minute - self.minute % LENGTH[grain]
            for kind, name in things.items():
                if name is not None and (kind, grain) != (Kind.SCHEDULE, Grain.MINUTE):
                    yield SumsKey(kind.value, grain.value, name, start)


Cells: TypeAlias = dict[CellKey, Sums]


def count_runs(cells: Cells, runs: Iterable[tuple[Claim, Settlement]]) -> None:
    """Count what became of claims, in the minutes in which they ended."""
    last: tuple[object, ...] = ()
    sums = Sums()
    # This comes with every run: most are like the one before, so that little is looked up, and nothing is called.
    for claim, change in runs:
        ended_at = change.finished_at or change.ended_at
        word = "succeeded" if change.state is State.SUCCEEDED else word_of(change)
        if ended_at is None or word is None:
            continue
        key = (ended_at // MINUTE, claim.task, claim.queue, claim.schedule)
        if key != last:
            last, sums = key, _sums_of(cells, CellKey(key[0] * MINUTE, *key[1:]))
        sums.outcomes[word] += 1
        if (started_at := change.started_at) is None:
            continue
        wait, run = started_at - claim.due_at, ended_at - started_at
        if wait < _EXACT or run < _EXACT:
            tally(sums.wait, wait)
            tally(sums.run, run)
        else:
            shift = wait.bit_length() - 4
            sums.wait[_STEPS * shift + (wait >> shift)] += 1
            sums.wait[TOTAL] += wait
            shift = run.bit_length() - 4
            sums.run[_STEPS * shift + (run >> shift)] += 1
            sums.run[TOTAL] += run
        if claim.occurrence is not None and claim.attempt == 1:
            tally(sums.lateness, started_at - claim.occurrence)


def count_skipped(cells: Cells, job: NewJob, *, now: Instant) -> None:
    """Count occurrences that were recorded without a run."""
    key = CellKey(now - now % MINUTE, job.task, job.queue, job.schedule)
    _sums_of(cells, key).outcomes[State.SKIPPED.value] += job.span_count


def _sums_of(cells: Cells, key: CellKey) -> Sums:
    found = cells.get(key)
    if found is None:
        found = cells[key] = Sums(*(defaultdict[Any, int](int) for _ in range(4)))
    return found


def write_cells(cells: Iterable[tuple[CellKey, Sums]]) -> str:
    """Return a part as it is stored."""
    return json.dumps([(*key, *sums.values()) for key, sums in cells], separators=(",", ":"))


def read_cells(body: str) -> list[tuple[CellKey, Sums]]:
    """Read a part; none of one that a later version wrote, or that was edited by hand."""
    try:
        found = cast("list[Any]", json.loads(body))
        return [(_cell_key(*cell[:4]), Sums.of(cell[4:])) for cell in found]
    except _UNREADABLE:
        return []


def _cell_key(minute: int, task: str, queue: str, schedule: str | None) -> CellKey:
    if not all(isinstance(name, str) for name in (task, queue, schedule or "")):
        raise TypeError("a name is no text")
    return CellKey(int(minute), task, queue, schedule)


def write_sums(sums: Sums) -> str:
    """Return sums as they are stored."""
    return json.dumps(sums.values(), separators=(",", ":"))


def read_sums(body: str) -> Sums:
    """Read sums; nothing of those that a later version wrote, or that were edited by hand."""
    try:
        return Sums.of(json.loads(body))
    except _UNREADABLE:
        return Sums()


def merged(bodies: Iterable[str]) -> dict[SumsKey, Sums]:
    """Add parts up, for each thing and each stretch of time."""
    found: dict[SumsKey, Sums] = {}
    for body in bodies:
        for cell, sums in read_cells(body):
            for key in cell.sums_keys():
                found.setdefault(key, Sums()).plus(sums)
    return found


def sums_by_start(
    stored: StoredStatistics, kind: Kind, grain: Grain, name: str, *, step: Micros | None = None
) -> dict[Instant, Sums]:
    """Return the sums of one thing by the start of each step, with what is not merged yet."""
    step = step or LENGTH[grain]
    prefix, found = SumsKey(kind.value, grain.value, name, 0).id[:-16], dict[Instant, list[dict[str, int]]]()

    def add(start: Instant, counts: list[dict[str, int]]) -> None:
        # Buckets stay texts until all is added: there are thousands of rows, and few steps.
        sums = found.setdefault(start - start % step, [{}, {}, {}, {}])
        for mine, theirs in zip(sums, counts, strict=True):
            get = mine.get
            for key, count in theirs.items():
                mine[key] = get(key, 0) + count

    for row_id, body in stored.rows:
        if row_id.startswith(prefix) and (start := row_id.removeprefix(prefix)).isdecimal():
            with suppress(*_UNREADABLE):
                add(int(start), _checked(json.loads(body)))
    place = (*Kind,).index(kind)
    for body in stored.parts:
        with suppress(*_UNREADABLE):
            for minute, *names, outcomes, wait, run, lateness in json.loads(body):
                if ("", *names)[place] == name and (kind, grain) != (Kind.SCHEDULE, Grain.MINUTE):
                    add(minute - minute % LENGTH[grain], _checked([outcomes, wait, run, lateness]))
    return {start: Sums.of(counts) for start, counts in found.items()}
