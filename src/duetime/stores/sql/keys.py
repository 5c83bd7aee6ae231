"""Enqueue under unique keys: at most one holder of each, whoever else is at it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from duetime.errors import KeyTaken, StoreUnavailable
from duetime.model.job import JobId, Key, NewJob
from duetime.model.keys import KeyDecision, KeyHolder, decide_key
from duetime.model.states import State
from duetime.model.time import Instant
from duetime.stores.base.values import ArgumentsMismatch
from duetime.stores.sql.driver import Query, Script
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import encode_batch, encode_new_jobs


class KeyedPlacement(NamedTuple):
    """Where requests have come to stand."""

    ids: Mapping[JobId, JobId]
    """The id of each request's job, by the id that was made for it."""
    clashes: Sequence[ArgumentsMismatch]
    now: Instant


_Asked: TypeAlias = dict[JobId, tuple[NewJob, Key]]
_MOST_TRIES: Final = 20
"""More than any rivals can make necessary: whoever looks so often does not see what is in the way."""


class _KeyHolders(NamedTuple):
    """What a look has found: the time, the requests that are stored, and who else has the keys of the others."""

    now: Instant
    stored: frozenset[JobId]
    holders: Mapping[JobId, KeyHolder]


def place(sql: Statements, jobs: Iterable[NewJob]) -> Script[KeyedPlacement]:
    """Store jobs with keys as if they came one after another; raise `KeyTaken` for one that insists on its own."""
    ids: dict[JobId, JobId] = {}
    clashes: list[ArgumentsMismatch] = []
    now = 0
    for asked in _rounds(jobs):
        placed = yield from _place(sql, asked)
        ids |= placed.ids
        clashes += placed.clashes
        now = placed.now
    return KeyedPlacement(ids, clashes, now)


def _rounds(jobs: Iterable[NewJob]) -> list[_Asked]:
    """Split requests so that none has a key twice, each in an order that is the same for everybody."""
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


def _place(sql: Statements, asked: _Asked) -> Script[KeyedPlacement]:
    """Try to store each request, and look who is in its way, until all have a job.

    No row is locked for longer than a statement needs: what a look has found may be changed by others before
    we act on it, and then the change does not apply and the next look finds out.
    """
    ids: dict[JobId, JobId] = {}
    clashes: list[ArgumentsMismatch] = []
    waiting: _Asked = dict(asked)
    for _ in range(_MOST_TRIES):
        yield Query(sql.enqueue, {"rows": encode_new_jobs(job for job, _ in waiting.values())})
        seen = yield from _look(sql, waiting)
        ids |= {job_id: job_id for job_id in seen.stored}
        verdicts = _judge_all(waiting, seen)
        for job_id, holder in verdicts[KeyDecision.JOIN].items():
            job = waiting[job_id][0]
            ids[job_id] = holder.id
            if job.payload != holder.payload:
                clashes.append(ArgumentsMismatch(job, holder.id))
        if verdicts[KeyDecision.REPLACE]:
            ids |= yield from _replace(sql, waiting, verdicts[KeyDecision.REPLACE])
        if verdicts[KeyDecision.TAKE_OVER]:
            yield from _free(sql, verdicts[KeyDecision.TAKE_OVER].values())
        waiting = {job_id: pair for job_id, pair in waiting.items() if job_id not in ids}
        if not waiting:
            return KeyedPlacement(ids, clashes, seen.now)
    raise _contended(waiting)


def _look(sql: Statements, waiting: _Asked) -> Script[_KeyHolders]:
    named = encode_batch((job.id, job.task, key.value) for job, key in waiting.values())
    found = yield Query(sql.key_holders, {"rows": named})
    now: Instant = found[0][0] if found else 0
    holders = {job_id: KeyHolder(id_, State(state), *rest) for _, job_id, id_, state, *rest in found}
    stored = frozenset(job_id for _, job_id, id_, *_ in found if id_ == job_id)
    return _KeyHolders(
        now, stored, {asked: holder for asked, holder in holders.items() if asked not in stored}
    )


def _judge_all(waiting: _Asked, seen: _KeyHolders) -> Mapping[KeyDecision, dict[JobId, KeyHolder]]:
    verdicts: dict[KeyDecision, dict[JobId, KeyHolder]] = {verdict: {} for verdict in KeyDecision}
    for job_id, holder in seen.holders.items():
        job, key = waiting[job_id]
        verdict = decide_key(key, holder, now=seen.now)
        if verdict is KeyDecision.REFUSE:
            raise _taken(job, key, holder)
        verdicts[verdict][job_id] = holder
    return verdicts


def _replace(sql: Statements, waiting: _Asked, held: Mapping[JobId, KeyHolder]) -> Script[dict[JobId, JobId]]:
    """Turn jobs that wait into those that were asked for; leave out those that have begun meanwhile."""
    changes = [waiting[job_id][0]._replace(id=holder.id) for job_id, holder in held.items()]
    changed = yield Query(sql.replace_keyed, {"rows": encode_new_jobs(changes)})
    done = {row[0] for row in changed}
    return {job_id: holder.id for job_id, holder in held.items() if holder.id in done}


def _free(sql: Statements, holders: Iterable[KeyHolder]) -> Script[None]:
    """Take the key from jobs that are still as they were seen."""
    yield Query(sql.free_keys, {"rows": encode_batch((holder.id, holder.state) for holder in holders)})


def _contended(waiting: _Asked) -> StoreUnavailable:
    named = ", ".join(repr(key.value) for _, key in islice(waiting.values(), 3))
    return StoreUnavailable(f"others take and give up the same keys all the time ({named}); try again later")


def _taken(job: NewJob, key: Key, holder: KeyHolder) -> KeyTaken:
    text = f"{job.task} has the job {holder.id} ({holder.state}) under the key {key.value!r} already"
    return KeyTaken(text, key=key.value, job_id=holder.id)
