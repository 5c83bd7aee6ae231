from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from duetime.model.instants import Instant, Micros
from duetime.model.job import Claim
from duetime.model.outcome import Crashed, Outcome
from duetime.runtime.dispatcher import Dispatcher
from duetime.runtime.identity import Identity
from duetime.runtime.janitor import Janitor
from duetime.stores.base import Orphan, Peer, Store
from tests.unit.runtime.kit import NoHealth, StillTime, claim


class Ward:
    """A store with orphans under this worker, and a dispatcher that notes what is settled."""

    def __init__(self, *claims: Claim, started_at: Instant | None) -> None:
        self.claims = claims
        self.started_at = started_at
        self.settled: list[tuple[str, Outcome]] = []

    async def peers(self, worker: str, host_key: str | None) -> list[Peer]:
        return []

    async def rescue(self, worker: str, claim_id: str) -> list[Orphan]:
        return []

    async def prune(self, *, before: Instant, limit: int) -> int:
        return 0

    async def claims_under(self, claim_id: str) -> list[Claim]:
        return [claim for claim in self.claims if claim.claim_id == claim_id]

    async def get(self, ids: Sequence[str]) -> list[Any]:
        class Record:
            def __init__(self, job_id: str, started_at: Instant | None) -> None:
                self.id = job_id
                self.started_at = started_at

        return [Record(job_id, self.started_at) for job_id in ids]

    def settle(self, claim: Claim, outcome: Outcome, *, started_at: Instant | None = None) -> None:
        self.settled.append((claim.job_id, outcome))


def janitor_of(ward: Ward, *, lease: Micros = 30_000_000) -> Janitor:
    return Janitor(
        store=cast("Store", ward),
        identity=Identity(queues=("default",), slots=1),
        dispatcher=cast("Dispatcher", ward),
        time=StillTime(),
        health=NoHealth(),
        lease=lease,
        retention=None,
    )


async def test_a_claim_held_without_knowing_why_is_settled_as_a_crash_and_never_started() -> None:
    adopted = claim("adopted", claim_id="of a rescue whose answer was lost", on_crash="fail")
    ward = Ward(adopted, started_at=5)
    janitor = janitor_of(ward)
    janitor.take_strays(frozenset({adopted.token}))
    await janitor.round()
    [(job_id, outcome)] = ward.settled
    assert job_id == "adopted"
    assert isinstance(outcome, Crashed)
    assert (outcome.started, outcome.blamed) == (True, False)
    await janitor.round()
    assert len(ward.settled) == 1


async def test_a_stray_that_was_never_started_is_no_crash() -> None:
    ahead = claim("ahead", claim_id="x")
    ward = Ward(ahead, started_at=None)
    janitor = janitor_of(ward)
    janitor.take_strays(frozenset({ahead.token}))
    await janitor.round()
    [(_, outcome)] = ward.settled
    assert isinstance(outcome, Crashed)
    assert not outcome.started
