"""A handler's own transaction: what it writes and the end of its job are committed together."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from duetime.errors import BlockingCallInLoop, ClaimLost, InvalidOption, TransactionMisused, Unsupported
from duetime.model.job import Claim
from duetime.model.outcome import Failed, Interrupted, Settlement, Signal, Succeeded, succeed
from duetime.model.time import SECOND, Instant, Micros, describe_duration
from duetime.runtime.codec.results import encode_result
from duetime.runtime.running.call_outcome import failure
from duetime.runtime.running.run import Run
from duetime.runtime.service import WorkerContext
from duetime.stores.base import HandlerTransaction

T = TypeVar("T")

_COMMIT_TIMEOUT: Final = 10.0
"""How long a run that was cancelled while it committed waits for the answer, in seconds."""


class JobTransaction:
    """For `async with` or, in a plain function, `with`; once the block has ended well, the job is done."""

    def __init__(self, run: Run, *, timeout: Micros | None, tx: object = None) -> None:
        """`tx`: the handler's own transaction, in which the job is to be completed."""
        self.result: object = None
        """What the job returns; `None`: what the handler does, where the block outlives it."""
        self._tx = tx
        if run.lender is None:
            raise Unsupported(
                "transaction() works in the worker's own process, not in a task with cpu=True, and of a hybrid for jobs "
                "that live far; far_queues= in its URL names the queues whose jobs all do"
            )
        self._run = run
        self._lender = run.lender
        self._timeout = run.lender.bound(timeout)
        self._connection: object = None
        self._loan: HandlerTransaction | None = None
        self._scope: asyncio.Timeout | None = None

    @property
    def connection(self) -> Any:
        """The driver's own connection to the store's database, or what was given as `tx`; its transaction is ended for you."""
        if self._connection is None:
            raise TransactionMisused("a transaction has a connection only inside its block")
        return self._connection

    async def __aenter__(self) -> Self:
        if asyncio.get_running_loop() is not self._lender.loop:
            raise Unsupported("`async with` works in the worker's loop; in a plain function write `with`")
        await self._begin(self._borrow())
        self._scope = asyncio.timeout(self._timeout / SECOND)
        await self._scope.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        late = False
        if (scope := self._scope) is not None:
            # Also past its time is a block that never let the event loop interrupt it.
            late = (scope.when() or 0) <= asyncio.get_running_loop().time()
            with contextlib.suppress(TimeoutError):
                await scope.__aexit__(kind, error, trace)
            late = late or scope.expired()
        await self._end(error, late=late)

    def __enter__(self) -> Self:
        _refuse_in_loop()
        loan = self._borrow()
        if not loan.blocking:
            raise Unsupported(
                "this connection works only in the event loop; use `async with`, in an async function"
            )
        self._in_loop(self._begin(loan))
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._in_loop(self._end(error))

    def _borrow(self) -> HandlerTransaction:
        if self._run.lent:
            raise TransactionMisused("a job has one transaction; a second could not be settled with it")
        self._run.lent = True
        self._loan = self._lender.store.lend(timeout=self._timeout, tx=self._tx)
        return self._loan

    async def _begin(self, loan: HandlerTransaction) -> None:
        self._connection = await loan.begin()
        self._run.loan = loan

    async def _end(self, error: BaseException | None, *, late: bool = False) -> None:
        """Settle and commit, or roll back; raises what the handler is to see instead of its own error."""
        loan, run = self._loan, self._run
        self._connection = run.loan = None
        if loan is None:
            return
        if error is None and isinstance(run.returned, Signal):
            error = run.returned
        try:
            if late or error is not None:
                await loan.abandon(error or TimeoutError())
            else:
                await self._complete(loan)
        except TimeoutError:
            late = True
        except TransactionMisused as misused:
            run.verdict = _failure(misused, reason="misused", final=True)
            raise misused from error
        except ClaimLost:
            run.verdict = Interrupted(reason="the claim was lost")
            raise
        if late or loan.expired:
            expired = TimeoutError(
                f"the transaction was open for longer than {describe_duration(self._timeout)}, so it was rolled back"
            )
            expired.__cause__ = error
            run.verdict = _failure(expired, reason="timeout")
            raise expired

    async def _complete(self, loan: HandlerTransaction) -> None:
        run = self._run
        success = Succeeded(*encode_result(run.returned if self.result is None else self.result))
        run.settling = True
        try:
            settlement = self._lender.settlement(run.claim, success, started_at=run.started_at)
            interrupted = await _uninterrupted(loan.complete(settlement))
            run.verdict = success
        finally:
            run.settling = run.verdict is not None
        if interrupted is not None:
            raise interrupted

    def _in_loop(self, call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(call, self._lender.loop).result()


def _refuse_in_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise BlockingCallInLoop("`with job.transaction()` would block the event loop; write `async with`")


async def _uninterrupted(call: Coroutine[Any, Any, None]) -> asyncio.CancelledError | None:
    """Let a call come to its end and return the cancellation that came meanwhile.

    A run that is cancelled after the commit, and does not wait for its answer, would take a job that is done for one
    that is not. It waits for a bounded time, because the answer may never come.
    """
    working = asyncio.ensure_future(call)
    interrupted = None
    try:
        await asyncio.wait({working})
    except asyncio.CancelledError as error:
        interrupted = error
        try:
            await asyncio.wait({working}, timeout=_COMMIT_TIMEOUT)
        finally:
            working.cancel()
            await asyncio.wait({working})
    if working.cancelled() and interrupted is not None:
        raise interrupted
    working.result()
    return interrupted


def _failure(error: Exception, *, reason: str, final: bool = False) -> Failed:
    return failure(error, reason=reason, final=final)


_DEFAULT_LENGTH: Final = 5 * SECOND
_LONGEST_SINGLE_WRITER: Final = 10 * SECOND
"""Where there is one writer: the others give up after that."""
_LEASE_PARTS: Final = 3
"""Into how many parts a lease falls, so that two of them are left to renew it."""


class TransactionLender:
    """Knows how long a transaction may keep the store."""

    def __init__(self, context: WorkerContext, loop: asyncio.AbstractEventLoop) -> None:
        """Transactions begin and end in the `loop`, also those that outlive their run."""
        self.loop = loop
        self.store = context.store
        self._time = context.time
        longest = min(context.options.lease // _LEASE_PARTS, _LONGEST_SINGLE_WRITER)
        self._longest = longest if self.store.single_writer else None

    def bound(self, timeout: Micros | None) -> Micros:
        """Return how long a transaction may be open; raises `InvalidOption` for one that asks for too much."""
        longest = self._longest
        if timeout is None:
            return min(_DEFAULT_LENGTH, longest or _DEFAULT_LENGTH)
        if longest is not None and timeout > longest:
            raise InvalidOption(
                f"timeout must be at most {describe_duration(longest)} on this database: no one else can write while "
                "the transaction is open, and this worker has its lease to renew; do what takes long before the block"
            )
        return timeout

    def settlement(self, claim: Claim, success: Succeeded, *, started_at: Instant) -> Settlement:
        """Return what a success is recorded as."""
        return succeed(claim, success, started_at=started_at, now=max(self._time.now(), started_at))
