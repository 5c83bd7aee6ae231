"""Lives in which workers die, come back too late, and operators interfere."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from duetime.model.ids import new_token
from duetime.model.job import JobEdit
from duetime.model.outcome import Outcome
from duetime.model.time import SECOND
from duetime.model.worker import WorkerId
from duetime.stores.base import EditAnswer, ReleaseAnswer
from duetime.testing.agreement import QUEUES, agree_on_claim
from duetime.testing.machine import LEASE, StoreMachine, outcomes, pick, some


def job_edit(**values: Any) -> JobEdit:
    """A change of these values; of the class itself Hypothesis would draw the others as well."""
    return JobEdit(**values)


edits = st.builds(
    job_edit,
    delay=st.sampled_from([None, 0, SECOND]),
    postpone=st.sampled_from([None, None, 0, LEASE]),
    queue=st.sampled_from([None, *QUEUES]),
    priority=st.sampled_from([None, 0, 9]),
    retries=st.sampled_from([None, 1]),
    expires=st.sampled_from([None, None, LEASE]),
    payload=st.sampled_from([None, None, '{"other":1}']),
).filter(lambda edit: edit.delay is None or edit.postpone is None)


class JobMachine(StoreMachine):
    """All that can happen to jobs and their workers."""

    @precondition(lambda self: self.held)
    @rule(which=st.lists(some, min_size=1, max_size=3), later=st.booleans())
    def start(self, which: list[int], later: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
        """A worker starts what it holds, or says so too late."""
        claims = self.claims if later else self.held
        tokens = [pick(claims, n).token for n in which]
        self.model.mark_started(tokens, self.clock.now())
        self.run(self.store.mark_started(tokens, self.clock.now()))

    @precondition(lambda self: self.sent)
    @rule(which=st.lists(some, min_size=1, max_size=3))
    def settle_again(self, which: list[int]) -> None:
        """Settlements are sent again, as after a lost answer."""
        self.send({(sent := pick(self.sent, n)).token: sent for n in which}.values())

    @precondition(lambda self: self.claims)
    @rule(end=st.tuples(some, outcomes))
    def settle_too_late(self, end: tuple[int, Outcome]) -> None:
        """A settlement comes from a worker that may have lost the job long ago."""
        claim = pick(self.claims, end[0])
        self.send([self.decide(claim, end[1])])

    @rule(which=st.lists(some, min_size=1, max_size=2), held=st.booleans())
    def cancel(self, which: list[int], held: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
        """Somebody cancels jobs, one of them unknown."""
        known = [claim.job_id for claim in self.held] if held else []
        ids = list(dict.fromkeys([*(pick(known or self.model.jobs, n) for n in which), "nothing"]))
        expected = self.model.cancel(ids, reason="off")
        assert self.run(self.store.cancel(ids, reason="off")) == expected

    @precondition(lambda self: len(self.model.jobs) > 1)
    @rule(which=some)
    def delete(self, which: int) -> None:
        """Somebody deletes a job, and asks again."""
        job_id = pick(self.model.jobs, which)
        for _ in range(2):
            expected = self.model.delete(job_id)
            assert self.run(self.store.delete([job_id])) == {job_id: expected}
        self.before = {known: job for known, job in self.before.items() if known in self.model.jobs}

    @precondition(lambda self: self.model.jobs)
    @rule(which=some, change=edits)
    def edit(self, which: int, change: JobEdit) -> None:
        """Somebody changes a job."""
        job_id = pick(self.model.jobs, which)
        changed = self.model.edit(job_id, change)
        answers = self.run(self.store.edit([job_id], change))
        assert (answers[job_id] == EditAnswer.CHANGED) == changed

    @precondition(lambda self: self.held)
    @rule(which=some, force=st.booleans())
    def release(self, which: int, force: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
        """Somebody takes a job away from its worker."""
        job_id = pick(self.held, which).job_id
        released = self.model.release(job_id, force=force)
        answers = self.run(self.store.release([job_id], force=force))
        assert (answers[job_id] == ReleaseAnswer.RELEASED) == released

    @rule(queue=st.sampled_from(QUEUES), pause=st.sampled_from([True, False, False]))
    def pause_queue(self, queue: str, pause: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
        """Somebody pauses or resumes a queue."""
        if pause:
            self.run(self.store.pause_queue(queue, reason=None))
            self.model.paused.add(queue)
        else:
            self.run(self.store.resume_queue(queue))
            self.model.paused.discard(queue)

    @rule(worker=some, rescuer=some, how=st.sampled_from(["retire", "bury", "expire"]))
    def die(self, worker: int, rescuer: int, how: str) -> None:
        """A worker, if possible one that holds jobs, stops or dies; another takes over, now and then a dead one."""
        holders = [name for name in self.living if self.model.running(name)]
        self.end(pick(holders or self.living, worker), how)
        self.rescue(pick(self.model.workers if rescuer % 8 == 0 else self.living, rescuer))

    @precondition(lambda self: len(self.living) > 1)
    @rule(worker=some, how=st.sampled_from(["retire", "bury", "expire"]))
    def die_unseen(self, worker: int, how: str) -> None:
        """A worker ends and nobody looks yet."""
        self.end(pick(self.living, worker), how)

    @rule(worker=some)
    def talk(self, worker: int) -> None:
        """A worker, alive or not, is heard of."""
        self.pulse(pick(self.model.workers, worker))

    def end(self, worker: WorkerId, how: str) -> None:
        """A worker stops, is found dead, or falls silent for longer than its lease."""
        if how == "bury":
            self.run(self.store.bury([worker]))
            self.model.end([worker], "dead")
        elif how == "retire":
            self.run(self.store.retire(worker))
            self.model.end([worker], "stopped")
        else:
            others = [name for name in self.living if name != worker]
            self.clock.set(self.clock.now() + LEASE)
            for other in others:
                self.pulse(other)
            self.clock.set(self.clock.now() + 1)

    def rescue(self, worker: WorkerId) -> None:
        """A worker, alive or not, looks for orphans."""
        claim_id = new_token()
        expected = self.model.rescue(worker, claim_id)
        orphans = self.run(self.store.rescue(worker, claim_id)).orphans
        assert {orphan.claim.token: (orphan.worker, orphan.blamed) for orphan in orphans} == expected
        for orphan in orphans:
            agree_on_claim(orphan.claim, self.model)
            assert orphan.started_at == self.model.jobs[orphan.claim.job_id].record.started_at
        self.claims += [orphan.claim for orphan in orphans]
