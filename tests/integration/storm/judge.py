"""What must be true after a storm: the append-only log of what happened, with the store's records held against it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from duetime.model.job import JobId
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import SECOND, Instant, Micros
from tests.integration.ledger import Entry, starts_by_job
from tests.integration.occurrences import stood_for

KILLED, FROZEN, THAWED = "storm-kill", "storm-stop", "storm-continue"
"""What the storm does to a process; such an entry names the process in place of a job."""
LASTING = frozenset({"work", "work_once"})
"""Tasks that log their end, and return the id of their process."""
AT_MOST_ONCE = "work_once"
AWAKENING: Micros = 2 * SECOND
"""How long a process that was stopped past its lease may take to cancel the runs that it has lost."""
POISONOUS = 3
"""A job that may be repeated is given up only after this many crashes; a claim that dies before its run begins is one."""
NEVER: Instant = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a storm has left behind."""

    entries: Sequence[Entry]
    accepted: Sequence[JobId]
    records: Mapping[JobId, StoredJob]
    """What the store has of the accepted jobs."""
    schedules: Mapping[str, Sequence[StoredJob]]
    """The records of each schedule, all of which fire every second."""
    first: Instant
    last: Instant
    """The stretch of occurrences that is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a job in one process."""

    pid: int
    began: Instant
    finished: Instant
    """When it ended, was cancelled or died with its process."""
    completed: bool
    """Whether its handler came to the end."""


class History:
    """The log, by jobs and by processes."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._killed = {int(entry.job): entry.at for entry in entries if entry.kind == KILLED}
        self._frozen: dict[int, list[tuple[Instant, Instant]]] = defaultdict(list)
        ends: dict[tuple[str, int], list[Entry]] = defaultdict(list)
        for entry in entries:
            if entry.kind == FROZEN:
                self._frozen[int(entry.job)].append((entry.at, NEVER))
            elif entry.kind == THAWED:
                began, _ = self._frozen[int(entry.job)].pop()
                self._frozen[int(entry.job)].append((began, entry.at + AWAKENING))
            elif entry.kind in {"end", "cancelled"}:
                ends[entry.job, entry.pid].append(entry)
        self.runs = {
            job: [self._run(start, ends[job, start.pid]) for start in starts]
            for job, starts in starts_by_job(entries).items()
        }

    def of(self, job: JobId) -> list[Run]:
        """Return the runs of a job in their order."""
        return self.runs.get(job, [])

    def awake_after(self, run: Run, moment: Instant) -> bool:
        """Whether a run went on after a moment in a process that was not frozen by then."""
        return run.finished > moment and not self._froze(run, moment)

    def _froze(self, run: Run, before: Instant) -> bool:
        return any(
            began <= before and began <= run.finished and run.finished <= over
            for began, over in self._frozen[run.pid]
        )

    def _run(self, start: Entry, ends: Sequence[Entry]) -> Run:
        end = next((entry for entry in ends if entry.at >= start.at), None)
        if end is None:
            died = self._killed.get(start.pid, NEVER) if start.task in LASTING else start.at
            return Run(pid=start.pid, began=start.at, finished=died, completed=False)
        return Run(pid=start.pid, began=start.at, finished=end.at, completed=end.kind == "end")


def violations(facts: Facts) -> list[str]:
    """Return a sentence for each promise that was broken."""
    history = History(facts.entries)
    return [
        *_lost(facts),
        *_overlapping(history),
        *_repeated(facts, history),
        *_misrecorded(facts, history),
        *_early(facts),
        *_occurrences(facts),
    ]


def _lost(facts: Facts) -> Iterator[str]:
    """A job that was accepted is there, and ends."""
    for job in facts.accepted:
        record = facts.records.get(job)
        if record is None:
            yield f"job {job} was accepted and is lost"
        elif not record.state.terminal:
            yield f"job {job} was accepted and is still {record.state}"


def _overlapping(history: History) -> Iterator[str]:
    """No job runs in two places at once; a process that was stopped past its lease has a moment to notice."""
    for job, runs in history.runs.items():
        for earlier, later in pairwise(runs):
            if history.awake_after(earlier, later.began):
                overlap = (min(earlier.finished, later.finished) - later.began) / SECOND
                yield f"job {job} ran in {earlier.pid} and {later.pid} at once for {overlap:.3f} s"


def _repeated(facts: Facts, history: History) -> Iterator[str]:
    """A job whose task may not be repeated begins at most once."""
    for job, record in facts.records.items():
        if record.task == AT_MOST_ONCE and len(history.of(job)) > 1:
            yield f"job {job} of an at-most-once task began {len(history.of(job))} times"


def _misrecorded(facts: Facts, history: History) -> Iterator[str]:
    """What is on record has happened."""
    for job, record in facts.records.items():
        runs = history.of(job)
        if record.state is State.SUCCEEDED:
            yield from _unfounded_success(record, runs)
        elif not record.state.terminal:
            continue
        elif record.task != AT_MOST_ONCE and not _is_given_up(record, runs):
            yield (
                f"job {job} is {record.state} ({record.reason}) after {len(runs)} runs, {record.crashes} crashes and "
                f"{record.blames} blames, and should have been run again"
            )
        elif any(run.completed and history.awake_after(run, record.finished_at or 0) for run in runs):
            yield f"job {job} was recorded as {record.state} while it ran"


def _is_given_up(record: StoredJob, runs: Sequence[Run]) -> bool:
    """Whether a job has been around enough deaths to pass for their cause; at the first one it never does."""
    return record.state is State.FAILED and record.crashes >= POISONOUS and len(runs) > 1


def _unfounded_success(record: StoredJob, runs: Sequence[Run]) -> Iterator[str]:
    if not runs:
        yield f"job {record.id} succeeded and never ran"
    elif record.task in LASTING and str(record.result) not in {str(run.pid) for run in runs if run.completed}:
        yield f"job {record.id} has the result {record.result}, which no completed run returned"


def _early(facts: Facts) -> Iterator[str]:
    """No run begins before its job is due."""
    for entry in facts.entries:
        if entry.kind == "start" and entry.at < entry.due_at:
            yield f"job {entry.job} began {(entry.due_at - entry.at) / 1000:.1f} ms early"


def _occurrences(facts: Facts) -> Iterator[str]:
    """Each occurrence has one record."""
    wanted = range(facts.first, facts.last + 1, SECOND)
    for name, records in facts.schedules.items():
        counted = Counter(moment for record in records for moment in stood_for(record, SECOND))
        for moment in wanted:
            if counted[moment] != 1:
                yield f"the occurrence {moment} of {name} has {counted[moment]} records"
