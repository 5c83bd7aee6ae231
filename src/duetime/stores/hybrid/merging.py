"""Makes one answer of those of several stores, which come from near to far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

from duetime.model.job import Claim
from duetime.model.queues import DueJobs, QueueCensus, StateCount, StoredQueue
from duetime.model.stored.jobs import StoredWorker
from duetime.model.worker import WorkerId
from duetime.stores.base import (
    ClaimRequest,
    NextDue,
    PeerWorker,
    Pulse,
    PulseFindings,
    RescueResult,
    SchemaStatus,
)

T = TypeVar("T")


def last(answers: Sequence[T]) -> T:
    """Return what far says."""
    return answers[-1]


def total(numbers: Iterable[int]) -> int:
    """Return the sum."""
    return sum(numbers)


def joined(lists: Iterable[Iterable[T]]) -> list[T]:
    """Return all that is listed."""
    return [*chain.from_iterable(lists)]


def named_once(lists: Iterable[Iterable[T]]) -> list[T]:
    """Return all that is listed, each once."""
    return [*dict.fromkeys(chain.from_iterable(lists))]


def added_up(counts: Iterable[Mapping[T, int]]) -> Mapping[T, int]:
    """Count everything together."""
    found = Counter[T]()
    for count in counts:
        found.update(count)
    return found


def demand_left(demand: ClaimRequest, claims: Sequence[Claim]) -> ClaimRequest:
    """Return what is still asked for when some jobs were claimed."""
    taken = Counter(claim.queue for claim in claims)
    queues = tuple((queue, most - taken[queue]) for queue, most in demand.queues)
    return replace(
        demand, limit=demand.limit - len(claims), queues=tuple(one for one in queues if one[1] > 0)
    )


def merged_next_due(found: Sequence[NextDue]) -> NextDue:
    """Tell when the next job falls due, by the clock of the last store."""
    now = found[-1].now
    return NextDue(
        now,
        _first(None if one.due_at is None else now + one.due_at - one.now for one in found),
        _first(None if one.limited_at is None else now + one.limited_at - one.now for one in found),
        limited=any(one.limited for one in found),
    )


def merged_pulse(pulses: Sequence[Pulse]) -> Pulse:
    """Tell what a worker holds anywhere; it is alive if it is so everywhere."""
    sights = [pulse.sight for pulse in pulses if pulse.sight is not None]
    return replace(
        pulses[-1],
        alive=all(pulse.alive for pulse in pulses),
        held=frozenset[Any]().union(*(pulse.held for pulse in pulses)),
        cancelling=frozenset[Any]().union(*(pulse.cancelling for pulse in pulses)),
        commands=any(pulse.commands for pulse in pulses),
        limited=any(pulse.limited for pulse in pulses),
        lease_ends=_first(pulse.lease_ends for pulse in pulses),
        watched_until=max((one.watched_until for one in pulses if one.watched_until), default=None),
        sight=_merged_sight(sights) if sights else None,
    )


def _merged_sight(sights: Sequence[PulseFindings]) -> PulseFindings:
    dues, fires, resumes, orphans = zip(*sights, strict=True)
    return PulseFindings(_first(dues), _first(fires), _first(resumes), orphans=any(orphans))


def merged_workers(lists: Iterable[Iterable[StoredWorker]]) -> list[StoredWorker]:
    """Show a worker that has a row in several stores as one; newest first."""
    found: dict[WorkerId, StoredWorker] = {}
    for row in joined(lists):
        found[row.id] = _as_one(found[row.id], row) if row.id in found else row
    return sorted(found.values(), key=lambda worker: (-worker.started_at, worker.id))


def _as_one(near: StoredWorker, far: StoredWorker) -> StoredWorker:
    """Take what was told last; both heartbeats tell how it fares with all stores."""
    rows = [row for row in (near, far) if row.state == "alive"] or [near, far]
    return replace(
        max(rows, key=lambda row: row.beat_at),
        declares=far.declares,
        fires=far.fires,
        started_at=min(row.started_at for row in rows),
        lease_until=min(row.lease_until for row in rows),
    )


def merged_peers(lists: Iterable[Iterable[PeerWorker]]) -> list[PeerWorker]:
    """Show each worker once, with the lease that ends first."""
    found: dict[WorkerId, PeerWorker] = {}
    for peer in sorted(joined(lists), key=lambda peer: peer.lease_left):
        found.setdefault(peer.id, peer)
    return list(found.values())


def merged_rescue(results: Sequence[RescueResult]) -> RescueResult:
    """Tell of each dead worker once."""
    return RescueResult(named_once(one.dead for one in results), joined(one.orphans for one in results))


def merged_queues(lists: Iterable[Iterable[StoredQueue]]) -> list[StoredQueue]:
    """Tell what is set for each queue; what far says of one counts."""
    found = {queue.name: queue for queue in joined(lists)}
    return [found[name] for name in sorted(found)]


def merged_census(counts: Sequence[QueueCensus]) -> QueueCensus:
    """Count everything together."""
    return QueueCensus(
        merged_queues(one.queues for one in counts),
        _merged_tallies(tally for one in counts for tally in one.tallies),
        gates_whole=all(one.gates_whole for one in counts),
        history_whole=all(one.history_whole for one in counts),
    )


def _merged_tallies(tallies: Iterable[StateCount]) -> list[StateCount]:
    sums: dict[StateCount, StateCount] = {}
    for tally in tallies:
        kind = tally._replace(jobs=0, whole=True)
        before = sums.get(kind, kind)
        sums[kind] = tally._replace(jobs=before.jobs + tally.jobs, whole=before.whole and tally.whole)
    return [sums[kind] for kind in sorted(sums) if sums[kind].jobs or not sums[kind].whole]


def merged_due_jobs(lists: Iterable[Iterable[DueJobs]]) -> list[DueJobs]:
    """Tell of each queue and task once."""
    jobs = added_up({(one.queue, one.task): one.jobs} for one in joined(lists))
    return [DueJobs(*place, count) for place, count in sorted(jobs.items())]


def merged_status(found: Sequence[SchemaStatus]) -> SchemaStatus:
    """Tell of a store whose tables do not fit, if there is one, and of all that is missing."""
    unfit = [status for status in found if status.found != status.wanted]
    return replace(
        (unfit or found)[-1],
        pending=tuple(step for status in found for step in status.pending),
        moved=next((status.moved for status in found if status.moved is not None), None),
    )


def _first(instants: Iterable[int | None]) -> int | None:
    return min((instant for instant in instants if instant is not None), default=None)
