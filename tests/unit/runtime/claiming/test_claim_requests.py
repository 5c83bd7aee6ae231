from __future__ import annotations

from typing import Any, cast

import pytest

from duetime.errors import StoreUnavailable
from duetime.model.job import Claim
from duetime.model.time import SECOND
from duetime.runtime.claiming.claim_requests import ClaimRequests
from duetime.runtime.identity import WorkerIdentity
from duetime.runtime.store_clock import StoreClock, monotonic
from duetime.stores.base import ClaimRequest, JobStore, NextDue
from tests.unit.runtime.kit import claim


def requests(store: object, identity: WorkerIdentity, time: StoreClock) -> ClaimRequests:
    nothing = cast("Any", None)
    return ClaimRequests(
        cast("JobStore", store),
        identity=identity,
        time=time,
        handlers={},
        queues=(),
        slots=nothing,
        held=nothing,
        limits={},
    )


class Reading:
    """A store whose clock is an hour ahead of this process."""

    async def next_due(self, _queues: object, _tasks: object) -> NextDue:
        return NextDue(now=monotonic() + 3600 * SECOND, due_at=None)


async def test_the_time_is_learnt_from_a_look_at_what_falls_due_and_is_never_ahead_of_the_store() -> None:
    time = StoreClock()
    asking = requests(Reading(), WorkerIdentity(queues=(), slots=0), time)
    found = await asking.next_due([], [])
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


@pytest.mark.parametrize(("lease_is_lost", "taken_up"), [(False, 1), (True, 0)])
async def test_claims_of_a_lost_answer_are_taken_up_unless_the_lease_is_lost_meanwhile(
    *, lease_is_lost: bool, taken_up: int
) -> None:
    identity = WorkerIdentity(queues=["default"], slots=1)
    store = LosingAnswers(identity, lease_is_lost=lease_is_lost)
    asking = requests(store, identity, StoreClock())
    demand = ClaimRequest(
        worker=identity.worker_id, claim_id="c1", queues=(("default", 1),), tasks=("task",), limit=1
    )
    with pytest.raises(StoreUnavailable):
        await asking.claim(demand)
    assert len(await asking.look_up("c1")) == taken_up
