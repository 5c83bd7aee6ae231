"""Writes what came of runs: settlements, attempts, progress and logs, and the jobs that they call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final, TypeAlias

from duetime.errors import ClaimLost, StoreUnavailable, TransactionMisused
from duetime.failpoints import failpoint
from duetime.model.callbacks import call_back
from duetime.model.job import JobId, NewJob, Token
from duetime.model.outcome import MAX_SNOOZED, SNOOZED, Settlement, as_stored, is_plain_success
from duetime.model.reports import NewLogPart, Progress
from duetime.model.states import State
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import Instant, Micros
from duetime.stores.base import HandlerTransaction
from duetime.stores.base.backoff import backoff
from duetime.stores.base.jobs import settled_hints
from duetime.stores.sql.driver import Driver, DriverHandlerTransaction, Query, Script
from duetime.stores.sql.enqueue import insertion
from duetime.stores.sql.records import job_record
from duetime.stores.sql.schema import check_identity
from duetime.stores.sql.statements.loader import Statements
from duetime.stores.sql.statements.rows import (
    encode_batch,
    encode_batch_for,
    encode_log_parts,
    encode_progress,
    encode_successes,
    settlement_row,
)
from duetime.stores.sql.verbs import SqlSubject

Ends: TypeAlias = Mapping[JobId, Settlement]
_NO_SETTLEMENTS: Final[Ends] = MappingProxyType({})


class SqlSettling(SqlSubject):
    """Writes what came of runs."""

    async def settle(self, settlements: Sequence[Settlement]) -> frozenset[Token]:
        """Write each change whose fence still holds and return their tokens."""
        if not settlements:
            return frozenset()
        plain = all(map(is_plain_success, settlements))
        atomic = not plain and any(map(_takes_several_statements, settlements))
        script = partial(settle, self._sql, settlements, plain=plain)
        accepted = await self._driver.write(script, atomic=atomic, rows=len(settlements))
        if not plain:
            self.hint_settled(settlements)
        if len(accepted) < len(settlements):
            missing = [change.token for change in settlements if change.token not in accepted]
            script = partial(_settled_before, self._sql, missing)
            accepted |= await self._driver.read(script, rows=len(missing))
        return accepted

    async def report(self, progress: Sequence[Progress], logs: Sequence[NewLogPart]) -> None:
        """Write what runs say while they run, fenced."""
        if progress or logs:
            single = not (progress and logs) and all(part.drop is None for part in logs)
            script = partial(report, self._sql, progress, logs)
            await self._driver.write(script, atomic=not single, rows=len(progress) + len(logs))

    def lend(self, *, timeout: Micros, tx: object = None) -> HandlerTransaction:
        """Return a transaction for a handler, on a connection of ours or in its own `tx`."""
        if tx is None:
            return SqlHandlerTransaction(self, self._driver, self._sql, self._driver.lend(timeout=timeout))
        lent = self._driver.borrow(tx).lend(timeout=timeout)
        return SqlHandlerTransaction(self, self._driver, self._sql, lent, ours=False)

    def hint_settled(self, settlements: Sequence[Settlement]) -> None:
        """Hint what has changed for workers because runs have ended."""
        for hint in settled_hints(settlements):
            self._driver.hint(hint)


def _takes_several_statements(change: Settlement) -> bool:
    more = change.new_jobs or change.calls_back or change.progress or change.logs
    return bool(change.attempt is not None or more)


def _succeed(sql: Statements, settlements: Sequence[Settlement]) -> Script[frozenset[Token]]:
    """Write runs that went well; when some are refused the answer is empty, and the caller looks up which."""
    [(count, *_)] = yield Query(sql.succeed, encode_successes(settlements))
    return frozenset([change.token for change in settlements] if count == len(settlements) else ())


def settle(
    sql: Statements, settlements: Sequence[Settlement], *, plain: bool = False
) -> Script[frozenset[Token]]:
    """Write the changes whose claims hold, with all that belongs to them, and return their tokens.

    `plain`: each of them is a plain success.
    """
    if plain:
        return (yield from _succeed(sql, settlements))
    said = [change.progress for change in settlements if change.progress is not None]
    logs = [part for change in settlements for part in change.logs]
    yield from report(sql, said, ())
    accepted = yield from _settle(sql, settlements)
    yield from report(sql, (), logs)
    return accepted


def _settle(sql: Statements, told: Sequence[Settlement]) -> Script[frozenset[Token]]:
    settlements = [as_stored(change) if change.fleeting else change for change in told]
    kept = [change for change in settlements if change.attempt is not None]
    holders: Mapping[JobId, tuple[str | None, Instant]] = {}
    if kept:
        locked = yield Query(sql.holders, {"rows": encode_batch(change.token for change in kept)})
        holders = {job_id: (worker, due_at) for job_id, worker, due_at in locked}
    if not kept and all(map(_is_success, settlements)):
        return (yield from _succeed(sql, settlements))
    changes = encode_batch_for(sql.settle, map(settlement_row, settlements))
    written = yield Query(sql.settle, {"rows": changes})
    accepted = frozenset(Token(*row[:3]) for row in written)
    kept = [change for change in kept if change.token in accepted]
    if kept:
        attempts = (_attempt(change, *holders[change.token.job_id]) for change in kept)
        yield Query(sql.add_attempts, {"rows": encode_batch(attempts)})
        yield from _trim(sql, kept)
    jobs = [job for change in settlements if change.token in accepted for job in change.new_jobs]
    ended = {c.token.job_id: c for c in told if c.calls_back and c.token in accepted}
    jobs += yield from callbacks(sql, list(ended), ended)
    if jobs:
        failpoint("within:settle")
        yield insertion(sql, jobs)
    return accepted


def _trim(sql: Statements, kept: Sequence[Settlement]) -> Script[None]:
    """Bound what is kept of jobs that put themselves off again and again."""
    old = [
        (change.token.job_id, change.token.fence - MAX_SNOOZED)
        for change in kept
        if change.attempt == SNOOZED and change.token.fence > MAX_SNOOZED
    ]
    if old:
        listed = encode_batch(old)
        yield Query(sql.trim_attempts, {"rows": listed})
        yield Query(sql.trim_logs, {"rows": listed})


def callbacks(sql: Statements, ids: Sequence[JobId], told: Ends = _NO_SETTLEMENTS) -> Script[list[NewJob]]:
    """Return what is to be enqueued because of these jobs, as they stand now in this transaction.

    What is told of their ends counts also where it is not stored.
    """
    if not ids:
        return []
    found = yield Query(sql.get, {"rows": encode_batch((job_id,) for job_id in ids)})
    ended = (_as_told(job_record(row), told) for row in found)
    return [new for job in ended if (new := call_back(job)) is not None]


def _as_told(job: StoredJob, told: Ends) -> StoredJob:
    change = told.get(job.id)
    if change is None or not change.fleeting:
        return job
    return replace(job, result=change.result, error=change.error, traceback=change.traceback)


def report(sql: Statements, progress: Sequence[Progress], logs: Sequence[NewLogPart]) -> Script[None]:
    """Write what runs say, as far as their claims hold."""
    if progress:
        yield Query(sql.note_progress, {"rows": encode_progress(progress)})
    if logs:
        yield Query(sql.add_logs, {"rows": encode_log_parts(logs)})
    drops = [(*part.token, *part.drop) for part in logs if part.drop is not None]
    if drops:
        yield Query(sql.drop_logs, {"rows": encode_batch(drops)})


def _settled_before(sql: Statements, tokens: Iterable[Token]) -> Script[frozenset[Token]]:
    """Find the claims that had been settled already."""
    found = yield Query(sql.settled_before, {"rows": encode_batch(tokens)})
    return frozenset(Token(*row) for row in found)


def fate(sql: Statements, token: Token) -> Script[bool]:
    """Tell whether a claim was settled, when no transaction is settling it any more."""
    held = yield Query(sql.holders, {"rows": encode_batch([token])})
    return not held and bool((yield from _settled_before(sql, [token])))


def _is_success(change: Settlement) -> bool:
    special = change.reason or change.error or change.new_jobs or change.calls_back
    return change.state is State.SUCCEEDED and not special


def _attempt(change: Settlement, worker: str | None, due_at: Instant) -> tuple[object, ...]:
    ends = change.started_at, change.ended_at, change.attempt, change.error, change.traceback
    kind = change.error_type, change.fingerprint
    return (change.token.job_id, change.token.fence, change.worker or worker, due_at, *ends, *kind)


class SqlHandlerTransaction:
    """A transaction of one driver, and what the store knows about ending it."""

    def __init__(
        self,
        store: SqlSettling,
        driver: Driver,
        sql: Statements,
        lent: DriverHandlerTransaction,
        *,
        ours: bool = True,
    ) -> None:
        """`ours`: the connection is one of the store's, so that it leads to the same database."""
        self._store = store
        self._driver = driver
        self._sql = sql
        self._lent = lent
        self._ours = ours
        self.blocking = lent.blocking

    @property
    def expired(self) -> bool:
        """Whether it took too long and was rolled back."""
        return self._lent.expired

    def keeps_out(self, store: object) -> bool:
        """Whether a store cannot write while this is open; one on the same file may not be known to be that."""
        return self._driver.single_writer and store is self._store

    async def begin(self) -> object:
        """Begin and return the connection."""
        connection = await self._lent.begin()
        if not self._ours:
            expected = await self._store.identity()
            await self._lent.run(lambda: check_identity(self._sql, expected))
        return connection

    async def complete(self, settlement: Settlement) -> None:
        """Write the settlement as the last statement and commit."""
        try:
            await self._settle(settlement)
        except BaseException:
            await self._lent.rollback()
            raise
        try:
            await self._lent.commit()
        except StoreUnavailable:
            if not await self._was_settled(settlement.token):
                raise
        self._store.hint_settled([settlement])

    async def abandon(self, error: BaseException) -> None:
        """Roll back; the handler's own error is not masked by trouble with that."""
        if not await self._lent.rollback(error):
            raise _misused()

    async def _settle(self, settlement: Settlement) -> None:
        if not await self._lent.is_whole():
            raise _misused()
        if self._lent.expired:
            raise TimeoutError
        if not await self._lent.run(lambda: settle(self._sql, [settlement])):
            raise ClaimLost(
                f"job {settlement.token.job_id} was given to another worker or is gone; "
                "what this run has written is rolled back"
            )

    async def _was_settled(self, token: Token) -> bool:
        """Look up what came of a commit, as soon as the database can be asked."""
        failures = 0
        while True:
            try:
                return await self._driver.write(lambda: fate(self._sql, token))
            except StoreUnavailable:
                await asyncio.sleep(backoff(failures, first=0.05, longest=2.0))
                failures += 1


def _misused() -> TransactionMisused:
    return TransactionMisused(
        "the handler has committed, rolled back or closed the transaction that it was lent, so its writes may "
        "have been committed without the job; leave the end of the transaction to the block"
    )
