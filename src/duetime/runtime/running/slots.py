"""How many jobs may run at once: in all, per queue, and in child processes; and how soon slots come free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field

from duetime.model.job import Claim
from duetime.model.time import MILLISECOND, SECOND, Instant, Micros

_SHORT_RUN: Micros = 25 * MILLISECOND
"""Runs shorter than this on average make waiting for the next claim worth avoiding."""
_SPAN: Micros = 50 * MILLISECOND
"""As many jobs are taken in advance as end in this time."""
_MAX_ENDING = 1_200
_WEIGHT = 0.05
"""How much the last run counts in an average."""
_LONGEST_GAP: Micros = 50 * MILLISECOND
"""A pause says nothing about how fast runs follow each other."""


@dataclass(slots=True)
class _Taken:
    """What runs, for all who share the slots."""

    starts: int | None
    """How many more jobs may start in all."""
    slots: int = 0
    children: int = 0
    by_queue: Counter[str] = field(default_factory=Counter[str])
    """What runs of the queues that have a limit."""
    line: list[Slots] = field(default_factory=list["Slots"])
    """Who found no slot and has not looked again; for each of them the others leave one."""


class Slots:
    """Counts what runs against the limits of this worker.

    Those who work on several stores share them. Then one that finds no slot is next in line, however busy the others are.
    """

    def __init__(
        self, total: int, limits: Mapping[str, int | None], *, children: int = 0, starts: int | None = None
    ) -> None:
        """`starts`: how many jobs may start in all, one after the other; `None` for any number."""
        self.total = total
        self._shared = _Taken(starts)
        self.on_last: Callable[[], object] = lambda: None
        """Called when the last job that may start takes its slot."""
        self.on_left_over: Callable[[], object] = lambda: None
        """Called when one leaves the line while others wait and a slot is free."""
        self.cpu_tasks: frozenset[str] = frozenset()
        """The tasks that need one of the children in addition to their slot."""
        self._children = children
        self._limits = {queue: limit for queue, limit in limits.items() if limit is not None}

    def share(self) -> Slots:
        """Return the same slots for the worker of another store."""
        return copy(self)

    @property
    def free(self) -> int:
        """How many more jobs may start at once; one is left to each who is before us in the line."""
        shared = self._shared
        free = self.total - shared.slots
        if shared.starts is not None:
            free = min(free, shared.starts)
        if line := shared.line:
            free = max(0, free - (line.index(self) if self in line else len(line)))
        return free

    def line_up(self) -> None:
        """Have a slot left for us, because none was free."""
        if self not in self._shared.line:
            self._shared.line.append(self)

    def leave_line(self) -> None:
        """Leave all to the others again, because we have looked."""
        if self in self._shared.line:
            self._shared.line.remove(self)
            if self._shared.line and self._shared.slots < self.total:
                self.on_left_over()

    @property
    def next_in_line(self) -> Slots | None:
        """Who has waited for the longest time."""
        return next(iter(self._shared.line), None)

    @property
    def starts(self) -> int | None:
        """How many more jobs may start in all; `None` for any number."""
        return self._shared.starts

    @property
    def only_total(self) -> bool:
        """Whether any free slot will do for any job."""
        return not self._limits and not self.cpu_tasks

    @property
    def taken(self) -> int:
        """How many jobs run."""
        return self._shared.slots

    @property
    def children_free(self) -> int:
        """How many more jobs may start in child processes."""
        return min(self.free, self._children - self._shared.children)

    def room(self, queue: str) -> int:
        """How many more jobs of a queue may start."""
        limit = self._limits.get(queue)
        return self.free if limit is None else min(self.free, limit - self._shared.by_queue[queue])

    def any_full(self, queues: Sequence[str]) -> bool:
        """Whether no more jobs of one of the queues may start."""
        return any(self.room(queue) <= 0 for queue in queues)

    def left(self, queue: str) -> int | None:
        """How many more jobs of a queue its own limit lets run; `None` where it has none."""
        limit = self._limits.get(queue)
        return None if limit is None else limit - self._shared.by_queue[queue]

    def take(self, claim: Claim) -> bool:
        """Fill a slot; False when none is free for the claim."""
        if self.free <= 0 or (self._limits and self.room(claim.queue) <= 0):
            return False
        if claim.task in self.cpu_tasks and self.children_free <= 0:
            return False
        shared = self._shared
        shared.slots += 1
        if claim.queue in self._limits:
            shared.by_queue[claim.queue] += 1
        if claim.task in self.cpu_tasks:
            shared.children += 1
        if shared.starts is not None:
            shared.starts -= 1
            if not shared.starts:
                self.on_last()
        return True

    def give_back(self, claim: Claim) -> None:
        """Free a slot."""
        shared = self._shared
        shared.slots -= 1
        if claim.queue in self._limits:
            shared.by_queue[claim.queue] -= 1
        if claim.task in self.cpu_tasks:
            shared.children -= 1


class RunSpeed:
    """How long runs have lasted lately, and how soon one has ended after another."""

    def __init__(self) -> None:
        self.duration: float = SECOND
        """How long runs have lasted, from when their handlers were called, in microseconds."""
        self.gap: float = _LONGEST_GAP
        """How long after one run the next has ended, in microseconds; a slot that is taken for long does not count."""
        self.by_task: dict[str, float] = {}
        """The same as `duration`, for each task of which a run has ended."""
        self._ended_at: Instant = 0

    @property
    def short(self) -> bool:
        """Whether runs are so short that a slot should not wait for the store."""
        return self.duration <= _SHORT_RUN

    def add(self, task: str, *, begun_at: Instant, ended_at: Instant) -> None:
        """Take in a run that has ended."""
        took, before = max(0, ended_at - begun_at), self.by_task.get(task, SECOND)
        self.duration += (took - self.duration) * _WEIGHT
        self.by_task[task] = before + (took - before) * _WEIGHT
        gap = min(abs(ended_at - self._ended_at), _LONGEST_GAP)
        self.gap += (gap - self.gap) * _WEIGHT
        self._ended_at = ended_at

    def ending_soon(self) -> int:
        """How many runs end in a moment, if they go on as lately; none while they last long."""
        return min(_MAX_ENDING, int(_SPAN / (self.gap + 1))) if self.short else 0

    def short_tasks(self, tasks: Iterable[str]) -> tuple[str, ...]:
        """Return those of the tasks whose own runs are short."""
        return tuple(task for task in tasks if self.by_task.get(task, SECOND) <= _SHORT_RUN)

    def distrust(self, task: str) -> None:
        """Forget what is known, since a claim of this task has waited in vain: the runs in the slots are of another kind."""
        self.by_task[task] = SECOND
        self.gap = _SPAN
