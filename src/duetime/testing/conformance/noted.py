"""What people do to jobs, queues and workers is noted with it, and only where something has changed."""

from __future__ import annotations

import pytest

from duetime.model.job import JobEdit
from duetime.model.limits import Gate
from duetime.model.stored.audit import AuditEntry, Subject
from duetime.model.worker import CommandKind, NewCommand
from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.callbacks import ALL
from duetime.testing.conformance.kit import finish, hire, job, put, take_one
from duetime.testing.conformance.suite import StoreSuite


def entry(name: str, *, kind: str = "job", verb: str = "change") -> AuditEntry:
    """An entry about something."""
    detail = {"reason": "☃"}
    return AuditEntry(verb=verb, target=Subject(kind, name).target(), who="ann", detail=detail)


async def noted(store: Store, name: str, *, kind: str = "job") -> list[str]:
    """What was done to something, newest first."""
    return [one.verb for one in await store.entries(Subject(kind, name).target(), limit=100)]


class TestNoted(StoreSuite):
    """`noted` and `entry` of the verbs that people use."""

    @pytest.mark.parametrize("verb", ["cancel", "delete", "edit", "release"])
    async def test_only_what_has_changed_is_noted(self, store: Store, clock: FakeClock, verb: str) -> None:
        await hire(store, "w1")
        ended = await put(store)
        await finish(store, await take_one(store), now=clock.now())
        waiting, held = await put(store, queue="other"), await put(store)
        await take_one(store, unstarted=True)
        ids = [waiting, held, ended, "no such job"]
        entries = {one: entry(one, verb=verb) for one in ids}
        match verb:
            case "cancel":
                await store.cancel(ids, reason="off", noted=entries)
            case "delete":
                await store.delete(ids, noted=entries)
            case "edit":
                await store.edit(ids, JobEdit(priority=1), noted=entries)
            case _:
                await store.release(ids, force=False, noted=entries)
        changed = {
            "cancel": [waiting, held],
            "delete": [waiting, ended],
            "edit": [waiting],
            "release": [held],
        }
        assert [one for one in ids if await noted(store, one)] == [one for one in ids if one in changed[verb]]
        (first, *_) = changed[verb]
        (found,) = await store.entries(entries[first].target, limit=9)
        assert (found.id, found.who, found.verb, found.at) == (entries[first].id, "ann", verb, clock.now())
        assert found.detail == {"reason": "☃"}

    async def test_a_change_that_is_asked_for_again_is_noted_once(self, store: Store) -> None:
        job_id = await put(store)
        told = {job_id: entry(job_id)}
        for _ in range(2):
            await store.cancel([job_id], reason="off", noted=told)
        for _ in range(2):
            await store.edit([job_id], JobEdit(priority=1), noted={job_id: entry(job_id, verb="edit")})
        assert await noted(store, job_id) == ["change"]

    async def test_what_is_not_to_be_noted_is_not(self, store: Store) -> None:
        job_id = await put(store)
        await store.cancel([job_id], reason="off")
        await store.pause_queue("mail", reason=None)
        assert await store.entries(None, limit=9) == []

    async def test_a_job_that_calls_back_is_noted_once(self, store: Store) -> None:
        job_id = await put(store, terms=ALL)
        await store.cancel([job_id], reason="off", noted={job_id: entry(job_id)})
        assert await noted(store, job_id) == ["change"]

    async def test_what_is_done_to_queues_is_noted(self, store: Store) -> None:
        def about(verb: str) -> AuditEntry:
            return entry("mail", kind="queue", verb=verb)

        await store.resume_queue("mail", entry=about("resume"))
        await store.pause_queue("mail", reason=None, entry=about("pause"))
        await store.resume_queue("mail", entry=about("resume"))
        await store.resume_queue("mail", entry=about("resume"))
        await store.set_queue_limit("mail", Gate(most=1), entry=about("limit"))
        assert sorted(await noted(store, "mail", kind="queue")) == ["limit", "pause", "resume"]

    async def test_a_purge_in_steps_is_noted_once_if_it_cancels_anything(
        self, store: Store, clock: FakeClock
    ) -> None:
        purge = entry("mail", kind="queue", verb="purge")
        before = clock.now() + 1
        assert await store.purge("mail", before=before, reason="off", limit=2, entry=purge) == 0
        assert await noted(store, "mail", kind="queue") == []
        await store.enqueue([job(queue="mail") for _ in range(5)])
        steps = [
            await store.purge("mail", before=before, reason="off", limit=2, entry=purge) for _ in range(4)
        ]
        assert (steps, await noted(store, "mail", kind="queue")) == ([2, 2, 1, 0], ["purge"])

    async def test_what_living_workers_are_told_is_noted_once(self, store: Store) -> None:
        await hire(store, "w1", "w2")
        await store.retire("w2")
        told = [NewCommand(id=f"c{name}", worker=name, kind=CommandKind.PAUSE) for name in ("w1", "w2", "w3")]
        entries = {one.id: entry(one.worker, kind="worker", verb="pause") for one in told}
        for _ in range(2):
            assert [one.worker for one in await store.send(told, noted=entries)] == ["w1"]
        found = [await noted(store, one.worker, kind="worker") for one in told]
        assert found == [["pause"], [], []]

    async def test_all_that_was_done_is_read_page_by_page_newest_first(
        self, store: Store, clock: FakeClock
    ) -> None:
        entries = [entry(f"q{number}", kind="queue", verb="pause") for number in range(5)]
        for one in entries:
            await store.pause_queue(Subject.of(one.target).name, reason=None, entry=one)
            clock.advance(1)
        newest = [one.id for one in reversed(entries)]
        assert [one.id for one in await store.entries(None, limit=9)] == newest
        assert [one.id for one in await store.entries(None, limit=2, before=newest[1])] == newest[2:4]
        assert await store.entries(None, limit=9, before=newest[-1]) == []
        assert await store.entries(None, limit=9, before="no such entry") == []
