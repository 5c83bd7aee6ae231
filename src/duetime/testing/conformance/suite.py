"""What the tests of the suite share: the fixture that a store must give, and the stores made from it."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import pytest
import pytest_asyncio

from duetime.errors import InvalidTransaction, Unsupported
from duetime.model.ids import new_job_id
from duetime.model.job import NewJob
from duetime.model.time import SECOND, Clock
from duetime.stores.base import Store
from duetime.testing.clock import FakeClock


def in_transactions(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Mark a test of lent transactions; on a store that lends none it makes sure that they are refused instead."""

    @functools.wraps(test)
    async def run(*args: Any, store: Store, **fixtures: Any) -> None:
        if store.capabilities.loans:
            await test(*args, store=store, **fixtures)
            return
        with pytest.raises(Unsupported):
            await store.lend(timeout=SECOND).begin()
        # No transaction at all, or none of a database that it knows.
        with pytest.raises(InvalidTransaction):
            await store.enqueue([NewJob(id=new_job_id(), task="any", payload="{}")], tx=object())
        assert await store.counts() == {}

    return run


class MakeStore(Protocol):
    """The one fixture that the suite needs, `make_store`: opens a store on the running test's own database.

    Stores of one namespace share everything, as two processes would; another namespace is empty.
    The fixture closes what it opened when the test ends.
    """

    async def __call__(self, clock: Clock, *, namespace: str = "duetime") -> Store:
        """Return an open store whose time is the clock's."""
        ...


class StoreSuite:
    """The base of all groups of tests."""

    pytestmark = pytest.mark.asyncio

    @pytest.fixture
    def clock(self) -> FakeClock:
        """The time of all stores of the test."""
        return FakeClock()

    @pytest_asyncio.fixture
    async def store(self, make_store: MakeStore, clock: FakeClock) -> Store:
        """The store under test."""
        return await make_store(clock)

    @pytest_asyncio.fixture
    async def other(self, make_store: MakeStore, clock: FakeClock, store: Store) -> Store:  # noqa: ARG002 - opened second
        """A second store on the same database, as another process would have it."""
        return await make_store(clock)
