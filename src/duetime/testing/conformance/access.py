"""Credentials are accepted while they are good, by the store's clock, and never again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from duetime.model.ids import new_job_id
from duetime.model.stored.audit import AuditEntry, Subject
from duetime.model.stored.credentials import CredentialKind, NewCredential, Role, digest_of, new_secret
from duetime.model.time import DAY, MINUTE, SECOND
from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.kit import prune
from duetime.testing.conformance.suite import StoreSuite


def token(**changes: Any) -> NewCredential:
    """A token, with a secret of its own."""
    plain = NewCredential(
        kind=CredentialKind.TOKEN, digest=digest_of(new_secret()), name="ci ☃", role=Role.OPERATOR
    )
    return replace(plain, **{"id": new_job_id(), **changes})


def entry(credential: str, verb: str) -> AuditEntry:
    """What is noted of a credential."""
    return AuditEntry(verb=verb, target=Subject("token", credential).target(), who="ann")


class TestAccess(StoreSuite):
    """Tokens, sessions and links."""

    async def test_it_is_found_by_its_digest_alone(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        new = token(queues=("mail", "ü"), lifetime=MINUTE, parent="p")
        await store.add_credential(new)
        await store.add_credential(token())
        found = await other.find_credential(new.digest)
        assert found is not None
        assert (found.id, found.kind, found.name, found.role) == (new.id, "token", "ci ☃", Role.OPERATOR)
        assert (found.queues, found.parent) == (("mail", "ü"), "p")
        assert (found.created_at, found.expires_at) == (clock.now(), clock.now() + MINUTE)
        assert (found.used_at, found.revoked_at) == (None, None)
        assert await other.find_credential(digest_of("guessed")) is None

    async def test_one_without_a_scope_or_an_end_says_so(self, store: Store, clock: FakeClock) -> None:
        new = token()
        await store.add_credential(new)
        clock.advance("365d")
        found = await store.find_credential(new.digest)
        assert found is not None
        assert (found.queues, found.expires_at, found.parent) == (None, None, None)

    async def test_it_is_not_accepted_past_its_end(self, store: Store, clock: FakeClock) -> None:
        new = token(lifetime=MINUTE)
        await store.add_credential(new)
        clock.advance(59)
        assert await store.find_credential(new.digest) is not None
        clock.advance(1)
        assert await store.find_credential(new.digest) is None
        assert not await store.touch_credential(new.id)
        assert not await store.touch_credential(new.id, lifetime=DAY)

    async def test_its_use_is_noted_and_may_put_off_its_end(self, store: Store, clock: FakeClock) -> None:
        new = token(kind=CredentialKind.SESSION, lifetime=MINUTE)
        await store.add_credential(new)
        used = clock.advance(30)
        assert await store.touch_credential(new.id)
        (found,) = await store.credentials(CredentialKind.SESSION)
        assert (found.used_at, found.expires_at) == (used, used + 30 * SECOND)
        assert await store.touch_credential(new.id, lifetime=DAY)
        (found,) = await store.credentials(CredentialKind.SESSION)
        assert found.expires_at == used + DAY
        assert not await store.touch_credential("none")

    async def test_what_is_revoked_is_never_accepted_again(self, store: Store, clock: FakeClock) -> None:
        new = token()
        await store.add_credential(new)
        assert await store.revoke_credentials([new.id, "none"]) == {new.id}
        assert await store.revoke_credentials([new.id]) == frozenset()
        assert await store.revoke_credentials([]) == frozenset()
        assert await store.find_credential(new.digest) is None
        assert not await store.touch_credential(new.id, lifetime=DAY)
        await store.add_credential(new)
        assert await store.find_credential(new.digest) is None
        (found,) = await store.credentials(CredentialKind.TOKEN)
        assert found.revoked_at == clock.now()

    async def test_what_was_made_from_it_ends_with_it(self, store: Store) -> None:
        parent = token()
        children = [token(kind=CredentialKind.SESSION, parent=parent.id) for _ in range(2)]
        stranger = token(kind=CredentialKind.SESSION, parent="another")
        for one in (parent, *children, stranger):
            await store.add_credential(one)
        assert await store.revoke_credentials([parent.id]) == {parent.id}
        found = [await store.find_credential(one.digest) for one in (*children, stranger)]
        assert [one and one.id for one in found] == [None, None, stranger.id]

    async def test_of_several_who_revoke_a_link_at_once_one_has_done_it(
        self, store: Store, other: Store
    ) -> None:
        link = token(kind=CredentialKind.LINK, lifetime=MINUTE)
        await store.add_credential(link)
        stores = [store, other] * 4
        answers = await asyncio.gather(*(one.revoke_credentials([link.id]) for one in stores))
        assert sorted(map(len, answers)) == [0] * 7 + [1]

    async def test_they_are_listed_by_kind_newest_first(self, store: Store, clock: FakeClock) -> None:
        made = [token(name=f"t{number}") for number in range(3)]
        for one in made:
            await store.add_credential(one)
            clock.advance(1)
        await store.add_credential(token(kind=CredentialKind.SESSION))
        listed = await store.credentials(CredentialKind.TOKEN)
        assert [one.name for one in listed] == ["t2", "t1", "t0"]
        assert await store.credentials(CredentialKind.LINK) == []

    async def test_who_made_and_revoked_it_is_noted_with_it(self, store: Store) -> None:
        new = token()
        await store.add_credential(new, entry=entry(new.id, "add"))
        for _ in range(2):
            await store.revoke_credentials([new.id], noted={new.id: entry(new.id, "revoke")})
        found = await store.entries(Subject("token", new.id).target(), limit=9)
        assert sorted(one.verb for one in found) == ["add", "revoke"]

    async def test_what_has_long_ended_is_removed(self, store: Store, clock: FakeClock) -> None:
        revoked, expired, good = token(), token(lifetime=MINUTE), token(lifetime=30 * DAY)
        for one in (revoked, expired, good):
            await store.add_credential(one)
        await store.revoke_credentials([revoked.id])
        clock.advance("3d")
        fresh = token()
        await store.add_credential(fresh)
        await store.revoke_credentials([fresh.id])
        await prune(store, before=clock.now() - DAY)
        left = {one.id for one in await store.credentials(CredentialKind.TOKEN)}
        assert left == {good.id, fresh.id}
