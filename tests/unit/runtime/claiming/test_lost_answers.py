from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import pytest

from duetime.errors import StoreUnavailable
from duetime.model.job import Claim, Token
from duetime.model.time import SECOND
from duetime.runtime.identity import WorkerIdentity
from duetime.runtime.store_clock import StoreClock, monotonic
from duetime.stores.base import ClaimRequest, NextDue, Store
from tests.unit.runtime.claiming.fetching import HANDLER, Idle, idle_fetcher
from tests.unit.runtime.kit import claim


class Reading:
    """A store whose clock is an hour ahead of this process."""

    async def next_due(self, _queues: object, _tasks: object) -> NextDue:
        return NextDue(now=monotonic() + 3600 * SECOND, due_at=None)


async def test_the_time_is_learnt_from_a_look_at_what_falls_due_and_is_never_ahead_of_the_store() -> None:
    time = StoreClock()
    fetcher = idle_fetcher(store=Reading(), time=time)
    found = await fetcher._next_due([], [])
    ahead = time.now() - monotonic()
    assert 3599 * SECOND < ahead <= 3600 * SECOND
    assert found.due_at is None


class LosingAnswers:
    """A store that has handed a job out and whose answer is lost."""

    def __init__(self, identity: WorkerIdentity, *, lease_is_lost: bool) -> None:
        self._identity = identity
        self._lease_is_lost = lease_is_lost

    async def claim(self, _demand: ClaimRequest) -> list[Claim]:
        raise StoreUnavailable("no answer")

    async def claims_under(self, _worker: str, _claim_id: str) -> list[Claim]:
        if self._lease_is_lost:
            self._identity.renew()
        return [claim()]


class Taking(Idle):
    """A dispatcher that counts what it is given, and knows none of it."""

    count = 0

    def unknown(self, tokens: Iterable[Token]) -> set[Token]:
        return {*tokens}

    def start_all(self, claims: Sequence[Claim], *, unmarked: bool) -> Sequence[Claim]:
        assert unmarked
        self.count += len(claims)
        return []


@pytest.mark.parametrize(("lease_is_lost", "taken_up"), [(False, 1), (True, 0)])
async def test_claims_of_a_lost_answer_are_taken_up_unless_the_lease_is_lost_meanwhile(
    *, lease_is_lost: bool, taken_up: int
) -> None:
    fetcher = idle_fetcher(dispatcher=(taking := Taking()), handlers={"task": HANDLER})
    fetcher._store = cast("Store", LosingAnswers(fetcher._identity, lease_is_lost=lease_is_lost))
    with pytest.raises(StoreUnavailable):
        await fetcher.round()
    await fetcher._recover_unanswered()
    assert taking.count == taken_up
