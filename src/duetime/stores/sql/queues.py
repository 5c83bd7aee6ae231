"""Queues: what is set for them, what is in them, and emptying them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from duetime.model.explain.facts import LimitFacts
from duetime.model.limits import UNLIMITED, Gate, gate_schedule
from duetime.model.queues import DueJobs, QueueCensus, StateCount, StoredQueue
from duetime.model.states import State
from duetime.model.stored.audit import AuditEntry
from duetime.model.text import clean_text
from duetime.model.time import Instant
from duetime.stores.base import CancelAnswer, Hint, QueueOutlook
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.enqueue import note
from duetime.stores.sql.job_control import cancel
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import read_gate, read_starts
from duetime.stores.sql.verbs import HintingScript, SqlSubject, read, write


class SqlQueues(SqlSubject):
    """What is set for queues, and what is in them."""

    @write()
    def pause_queue(
        self, queue: str, *, reason: str | None, entry: AuditEntry | None = None
    ) -> HintingScript[None]:
        """Hand out nothing more from a queue."""
        text = None if reason is None else clean_text(reason)
        yield Query(self._sql.pause_queue, {"queue": queue, "reason": text})
        yield from note(self._sql, [entry])

    @write()
    def resume_queue(self, queue: str, *, entry: AuditEntry | None = None) -> HintingScript[None]:
        """Hand out jobs of a queue again."""
        if (yield Query(self._sql.resume_queue, {"queue": queue})):
            yield from note(self._sql, [entry])
        yield Hint("jobs")

    @read()
    def outlook(self, queue: str, *, gate: str | None = None) -> Script[QueueOutlook]:
        """Return what else than workers decides whether jobs in a queue, under a gate, are handed out."""
        [(now, paused_at, reason)] = yield Query(self._sql.outlook, {"queue": queue})
        schedule = None if gate is None else gate_schedule(gate)
        limits = yield Query(self._sql.limits_on, {"queue": queue, "gate": gate, "schedule": schedule})
        facts = [
            LimitFacts.of(kind, name, read_gate(*rule), running=running, starts=read_starts(starts), now=now)
            for kind, name, *rule, starts, running in limits
        ]
        return QueueOutlook(now, paused_at, reason, tuple(facts))

    @read()
    def queues(self) -> Script[list[StoredQueue]]:
        """Return what is set for queues, by name."""
        return (yield from _read_queues(self._sql))

    @write()
    def set_queue_limit(
        self, queue: str, limit: Gate | None, *, entry: AuditEntry | None = None
    ) -> HintingScript[None]:
        """Limit a queue, or no longer."""
        rule = limit or UNLIMITED
        rate = {"rate_count": rule.count, "rate_period": None if rule.count is None else rule.period}
        yield Query(self._sql.set_queue_limit, {"queue": queue, "most": rule.most, **rate})
        yield from note(self._sql, [entry])
        yield Hint("jobs")

    @read(rows=None)
    def counts(self) -> Script[Mapping[tuple[str, State], int]]:
        """Return how many jobs each queue has in each state."""
        return {(queue, State(state)): n for queue, state, n in (yield Query(self._sql.counts, {}))}

    @read(rows=None)
    def census(self, *, most: int) -> Script[QueueCensus]:
        """Count what is in each queue, up to a bound for each thing that is counted."""
        queues = yield from _read_queues(self._sql)
        tallies: list[StateCount] = []
        for queue, _, due, later in (yield Query(self._sql.tally_waiting, {"most": most})):
            tallies.append(StateCount(queue, State.PENDING, due, due=True, whole=due < most))
            tallies.append(StateCount(queue, State.PENDING, later, whole=later < most))
        gated = yield Query(self._sql.tally_gated, {"most": most})
        for queue, due, count in gated:
            tallies.append(StateCount(queue, State.PENDING, count, due=bool(due)))
        for queue, started, count in (yield Query(self._sql.tally_running, {})):
            tallies.append(StateCount(queue, State.RUNNING, count, started=bool(started)))
        latest = yield Query(self._sql.tally_latest, {"most": most})
        for queue, state, started, count in latest:
            if State(state).terminal:
                tallies.append(StateCount(queue, State(state), count, started=bool(started)))
        gates, history = (sum(row[-1] for row in found) < most for found in (gated, latest))
        return QueueCensus(queues=queues, tallies=tallies, gates_whole=gates, history_whole=history)

    @read(rows=None)
    def due_jobs(self, *, most: int) -> Script[list[DueJobs]]:
        """Tell which tasks the due jobs that no worker has are of."""
        counts = Counter[tuple[str, str]]()
        queue = ""
        for _ in range(most):
            found = yield Query(self._sql.next_queue, {"queue": queue})
            if not found:
                break
            [(queue,)] = found
            for task, jobs in (yield Query(self._sql.due_in_queue, {"queue": queue, "most": most})):
                counts[queue, task] += jobs
        for queue, task, jobs in (yield Query(self._sql.due_at_gates, {"most": most})):
            counts[queue, task] += jobs
        return [DueJobs(*kind, jobs) for kind, jobs in sorted(counts.items())]

    @write(rows=None)
    def purge(
        self, queue: str, *, before: Instant, reason: str, limit: int, entry: AuditEntry | None = None
    ) -> HintingScript[int]:
        """Cancel up to `limit` pending jobs of a queue that were stored before; lock them first against workers."""
        values = {"queue": queue, "before": before, "limit": limit}
        found = yield Query(self._sql.purgeable, values)
        if len(found) < limit:
            found += yield Query(self._sql.purgeable_gated, values | {"limit": limit - len(found)})
        if not found:
            return 0
        answers = yield from cancel(self._sql, [row[0] for row in found], reason=reason)
        yield from note(self._sql, [entry])
        return list(answers.values()).count(CancelAnswer.CANCELLED)


def _read_queues(sql: Statements) -> Script[list[StoredQueue]]:
    return [
        StoredQueue(name=name, paused_at=at, paused_reason=why, limit=read_gate(*rule))
        for name, at, why, *rule in (yield Query(sql.queues, {}))
    ]
