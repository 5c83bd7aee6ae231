"""An answer that was lost can be looked up, or the question asked again."""

from __future__ import annotations

from duetime.model.outcome import Released
from duetime.model.time import SECOND
from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import finish, hire, job, put, take, take_one
from duetime.testing.conformance.suite import StoreSuite


class TestLostReplies(StoreSuite):
    """`claims_under`."""

    async def test_what_a_claim_handed_out_can_be_looked_up(self, store: Store, other: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([job(priority=p, payload=f"[{p}]") for p in (5, 0, 9)])
        claims = await take(store, claim_id="lost")
        found = await other.claims_under("w1", "lost")
        assert sorted(found, key=lambda claim: claim.priority) == claims

    async def test_claims_taken_ahead_can_be_looked_up_too(self, store: Store) -> None:
        await hire(store, "w1")
        await put(store, delay=5)
        claim = await take_one(store, claim_id="lost", ahead=SECOND)
        assert await store.claims_under("w1", "lost") == [claim]

    async def test_only_what_is_still_held_is_found(self, store: Store, clock: FakeClock) -> None:
        await hire(store, "w1")
        await store.enqueue([job() for _ in range(3)])
        ended, released, kept = await take(store, claim_id="lost")
        await finish(store, ended, now=clock.now())
        await finish(store, released, Released(SECOND), now=clock.now())
        assert [claim.token for claim in await store.claims_under("w1", "lost")] == [kept.token]

    async def test_a_claim_that_never_arrived_has_nothing(self, store: Store) -> None:
        await hire(store, "w1")
        await put(store)
        await take_one(store, claim_id="other")
        assert await store.claims_under("w1", "lost") == []

    async def test_what_somebody_else_has_taken_over_is_no_longer_found(self, store: Store) -> None:
        await hire(store, "w1", "w2")
        await put(store)
        await take_one(store, claim_id="lost")
        await store.bury(["w1"])
        (orphan,) = (await store.rescue("w2", "rescue")).orphans
        assert await store.claims_under("w1", "lost") == []
        assert [claim.token for claim in await store.claims_under("w2", "rescue")] == [orphan.claim.token]

    async def test_asking_again_under_the_same_claim_id_hands_out_only_more(self, store: Store) -> None:
        await hire(store, "w1")
        await store.enqueue([job(), job()])
        first = await take_one(store, claim_id="lost", limit=1)
        second = await take_one(store, claim_id="lost", limit=1)
        assert first.job_id != second.job_id
        assert {claim.token for claim in await store.claims_under("w1", "lost")} == {
            first.token,
            second.token,
        }
