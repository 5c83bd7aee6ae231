"""Enqueue under unique keys: at most one holder of each, however many enqueue at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from duetime.errors import StoreUnavailable
from duetime.model.job import JobId, Key, KeyDecision, KeyHolder, NewJob, decide_key
from duetime.model.states import State
from duetime.model.time import Instant
from duetime.stores.base.jobs import key_taken
from duetime.stores.base.values import ArgumentsMismatch
from duetime.stores.sql.driver import Query, Row, Script
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import encode_batch, encode_new_jobs

_Asked: TypeAlias = dict[JobId, tuple[NewJob, Key]]
_MOST_TRIES: Final = 20
"""More tries than competing requests can make necessary; after these, the holder of the key cannot be seen."""


class KeyedPlacement(NamedTuple):
    """Where requests have come to stand."""

    ids: dict[JobId, JobId]
    """The id of each request's job, by the id that was made for it."""
    clashes: list[ArgumentsMismatch]
    now: Instant = 0


def place(sql: Statements, jobs: Iterable[NewJob]) -> Script[KeyedPlacement]:
    """Store jobs with keys as if they came one after another; raise `KeyTaken` for one that insists on its own."""
    placed = KeyedPlacement({}, [])
    for asked in _rounds(jobs):
        placed = yield from _place(sql, asked, placed)
    return placed


def _rounds(jobs: Iterable[NewJob]) -> list[_Asked]:
    """Split requests so that none has a key twice, each in an order that is the same for all callers."""
    rounds: list[_Asked] = []
    turns: dict[tuple[str, str], int] = {}
    for job in sorted(jobs, key=_name):
        if job.key is None or any(job.id in asked for asked in rounds):
            continue
        turn = turns[_name(job)] = turns.get(_name(job), -1) + 1
        if turn == len(rounds):
            rounds.append({})
        rounds[turn][job.id] = (job, job.key)
    return rounds


def _name(job: NewJob) -> tuple[str, str]:
    return job.task, "" if job.key is None else job.key.value


def _place(sql: Statements, waiting: _Asked, placed: KeyedPlacement) -> Script[KeyedPlacement]:
    """Try to store each request, and look which job is in its way, until all have a job.

    No row is locked for longer than a statement needs: what a look has found may be changed by others before
    we act on it, and then the change does not apply and the next look finds out.
    """
    ids = placed.ids
    for _ in range(_MOST_TRIES):
        yield Query(sql.enqueue, {"rows": encode_new_jobs(job for job, _ in waiting.values())})
        named = encode_batch((job.id, job.task, key.value) for job, key in waiting.values())
        found = yield Query(sql.key_holders, {"rows": named})
        now: Instant = found[0][0] if found else 0
        ids |= {job_id: job_id for _, job_id, id_, *_ in found if id_ == job_id}
        replaceable, outlived = _judge(waiting, placed, found, now=now)
        if replaceable:
            ids |= yield from _replace(sql, waiting, replaceable)
        if outlived:
            yield Query(sql.free_keys, {"rows": encode_batch(outlived)})
        waiting = {job_id: pair for job_id, pair in waiting.items() if job_id not in ids}
        if not waiting:
            return placed._replace(now=now)
    named = ", ".join(repr(key.value) for _, key in islice(waiting.values(), 3))
    raise StoreUnavailable(f"others take and give up the same keys all the time ({named}); try again later")


def _judge(
    waiting: _Asked, placed: KeyedPlacement, found: Sequence[Row], *, now: Instant
) -> tuple[dict[JobId, JobId], list[tuple[JobId, State]]]:
    """Tell which requests may replace which jobs, and which jobs give up their keys; note which are joined."""
    replaceable: dict[JobId, JobId] = {}
    outlived: list[tuple[JobId, State]] = []
    for _, job_id, id_, state, *rest in found:
        if job_id in placed.ids:
            continue
        job, key = waiting[job_id]
        holder = KeyHolder(id_, State(state), *rest)
        match decide_key(key, holder, now=now):
            case KeyDecision.REFUSE:
                raise key_taken(job, key, holder)
            case KeyDecision.JOIN:
                placed.ids[job_id] = id_
                if job.payload != holder.payload:
                    placed.clashes.append(ArgumentsMismatch(job, id_))
            case KeyDecision.REPLACE:
                replaceable[job_id] = id_
            case KeyDecision.TAKE_OVER:
                outlived.append((id_, holder.state))
    return replaceable, outlived


def _replace(sql: Statements, waiting: _Asked, holders: Mapping[JobId, JobId]) -> Script[dict[JobId, JobId]]:
    """Turn jobs that wait into those that were asked for; leave out those that have begun meanwhile."""
    changes = [waiting[job_id][0]._replace(id=holder) for job_id, holder in holders.items()]
    done = {row[0] for row in (yield Query(sql.replace_keyed, {"rows": encode_new_jobs(changes)}))}
    return {job_id: holder for job_id, holder in holders.items() if holder in done}
