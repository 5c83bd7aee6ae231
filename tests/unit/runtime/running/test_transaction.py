"""A handler's transaction without a store; tests/integration/test_transactions.py has the rest."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from duetime.errors import Unsupported
from duetime.model.outcome import Succeeded
from duetime.model.time import SECOND
from duetime.runtime.running.run import Run
from duetime.runtime.running.transaction import JobTransaction
from tests.unit.runtime.kit import claim


def test_a_plain_function_in_a_child_process_is_refused() -> None:
    with pytest.raises(Unsupported, match="cpu=True"), JobTransaction(Run(claim(), 0), timeout=SECOND):
        pass


async def test_a_coroutine_in_a_child_process_is_refused() -> None:
    with pytest.raises(Unsupported, match="cpu=True"):
        async with JobTransaction(Run(claim(), 0), timeout=SECOND):
            pass


class Completing:
    """A loan, its lender and their store; the answer to the commit comes when the test says so, or never."""

    blocking = True
    expired = False

    def __init__(self) -> None:
        self.loop, self.store = asyncio.get_running_loop(), self
        self.asked, self.answer = asyncio.Event(), asyncio.Event()

    def bound(self, timeout: int) -> int:
        return timeout

    def lend(self, *, timeout: int, tx: object = None) -> Completing:
        return self

    def settlement(self, *_: object, **__: object) -> None:
        return None

    async def begin(self) -> object:
        return object()

    async def complete(self, _settlement: object) -> None:
        self.asked.set()
        await self.answer.wait()


async def completed(run: Run) -> None:
    async with JobTransaction(run, timeout=SECOND):
        """Nothing to write."""


@pytest.fixture
async def loan() -> Completing:
    return Completing()


@pytest.fixture
async def run(loan: Completing) -> Run:
    return Run(claim(), 0, lender=cast("Any", loan))


async def test_a_cancellation_waits_for_the_answer_to_the_commit(run: Run, loan: Completing) -> None:
    handler = run.task = asyncio.create_task(completed(run))
    await loan.asked.wait()
    handler.cancel()
    await asyncio.sleep(0)
    assert not handler.done()
    loan.answer.set()
    with pytest.raises(asyncio.CancelledError):
        await handler
    assert run.verdict == Succeeded()


async def test_a_second_cancellation_does_not_wait(run: Run, loan: Completing) -> None:
    handler = run.task = asyncio.create_task(completed(run))
    await loan.asked.wait()
    handler.cancel()
    await asyncio.sleep(0)
    handler.cancel()
    with pytest.raises(asyncio.CancelledError):
        await handler
    assert run.verdict is None


async def test_an_answer_that_never_comes_is_not_waited_for_without_end(
    run: Run, loan: Completing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duetime.runtime.running.transaction._COMMIT_TIMEOUT", 0.01)
    handler = run.task = asyncio.create_task(completed(run))
    await loan.asked.wait()
    handler.cancel()
    with pytest.raises(asyncio.CancelledError):
        await handler
    assert run.verdict is None
