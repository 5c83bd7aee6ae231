"""Random lives of a store, compared with the simple one after every step.

Needs Hypothesis. `StoreMachine` drives any store through a function that runs its coroutines.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from duetime.model import schedule as schedules
from duetime.model.ids import new_job_id, new_token
from duetime.model.instants import SECOND
from duetime.model.job import Claim, JobId, JobRecord, NewJob
from duetime.model.outcome import (
    Cancelled,
    Crashed,
    Failed,
    Interrupted,
    Outcome,
    Released,
    Settlement,
    Succeeded,
    decide,
)
from duetime.model.retry import fixed
from duetime.model.schedule import Firing, NewSchedule, ScheduleRecord
from duetime.model.triggers import Every
from duetime.model.worker import WorkerInfo, WorkerStats
from duetime.stores.base import Demand, Store
from duetime.testing.agreement import QUEUES, TASKS, agree, agree_on_claim
from duetime.testing.clock import FakeClock
from duetime.testing.model import ModelStore

T = TypeVar("T")

LEASE = 30 * SECOND
AHEAD = SECOND
NAMES = ("s1", "s2")
POLICY = fixed(1, 2)

some = st.integers(0, 1_000)
"""Picks one of however many there are."""


class Runner(Protocol):
    """Runs a coroutine to its end in the store's event loop."""

    def __call__(self, verb: Coroutine[Any, Any, T], /) -> T:
        """Return what the coroutine returns."""
        ...


@dataclass(frozen=True, slots=True)
class World:
    """What a machine lives in."""

    run: Runner
    make_store: Callable[[FakeClock], Coroutine[Any, Any, Store]]
    """Opens a store on empty tables."""


new_jobs = st.builds(
    NewJob,
    id=st.builds(new_job_id),
    payload=st.just("{}"),
    task=st.sampled_from([TASKS[0], *TASKS]),
    queue=st.sampled_from(QUEUES),
    priority=st.sampled_from([0, 5, 9]),
    delay=st.sampled_from([0, 0, SECOND // 2, 5 * SECOND]),
    on_crash=st.sampled_from(["retry", "retry", "fail"]),
    retries=st.sampled_from([None, 0, 2]),
)
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Succeeded, st.just('"done"')),
    st.builds(Failed, error=st.just("boom"), traceback=st.just("line 1"), final=st.booleans()),
    st.builds(Cancelled, st.just("stopped")),
    st.builds(Released, st.sampled_from([0, SECOND])),
    st.builds(Interrupted, reason=st.just("shutdown")),
    st.builds(Crashed, worker=st.just("w"), started=st.booleans(), blamed=st.booleans()),
)


class StoreMachine(RuleBasedStateMachine):
    """A store under test beside the model of one."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.run = world.run
        self.clock = FakeClock()
        self.store = self.run(world.make_store(self.clock))
        self.model = ModelStore(self.clock)
        self.claims: list[Claim] = []
        self.sent: list[Settlement] = []
        self.plans: list[Firing] = []
        self.before: Mapping[JobId, JobRecord] = {}

    def teardown(self) -> None:
        """Let go of the store."""
        self.run(self.store.close())

    @property
    def held(self) -> list[Claim]:
        """The claims that still stand."""
        return [claim for claim in self.claims if self.model.holds(claim.token)]

    @initialize()
    def begin(self) -> None:
        """There is always somebody to talk of."""
        self.hire()

    @rule()
    def hire(self) -> None:
        """A worker registers."""
        worker = f"w{len(self.model.workers)}"
        info = WorkerInfo(
            id=worker, host="h", host_key=None, pid=1, pid_started=None, version="0", queues=QUEUES, slots=1
        )
        self.run(self.store.register(info, lease=LEASE))
        self.model.register(worker, lease=LEASE)

    @rule(jobs=st.lists(new_jobs, min_size=1, max_size=4))
    def enqueue(self, jobs: list[NewJob]) -> None:
        """Jobs go in, and go in again after a lost answer."""
        expected = self.model.enqueue(jobs)
        assert self.run(self.store.enqueue(jobs)) == expected
        assert self.run(self.store.enqueue(jobs[:1])) == expected[:1]

    @rule(
        worker=some,
        shares=st.permutations([(queue, 3) for queue in QUEUES]),
        limit=st.integers(0, 5),
        ahead=st.sampled_from([0, 0, AHEAD]),
        below=st.sampled_from([10, 10, 6]),
    )
    def claim(self, worker: int, shares: list[tuple[str, int]], limit: int, ahead: int, below: int) -> None:
        """A worker, alive or not, asks for jobs."""
        demand = Demand(
            worker=pick(self.model.workers, worker),
            claim_id=new_token(),
            queues=tuple(shares),
            limit=limit,
            tasks=TASKS[:1],
            ahead=ahead,
            below_priority=below,
        )
        expected = self.model.claim(demand)
        claims = self.run(self.store.claim(demand))
        assert [claim.token for claim in claims] == expected
        assert {claim.token for claim in self.run(self.store.claims_under(demand.claim_id))} == set(expected)
        for claim in claims:
            agree_on_claim(claim, self.model)
        self.claims += claims

    @precondition(lambda self: self.held)
    @rule(which=st.lists(some, min_size=1, max_size=3), later=st.booleans())
    def start(self, which: list[int], later: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
        """A worker starts what it holds, or says so too late."""
        claims = self.claims if later else self.held
        tokens = [pick(claims, n).token for n in which]
        self.model.mark_started(tokens, self.clock.now())
        self.run(self.store.mark_started(tokens, self.clock.now()))

    @precondition(lambda self: self.held)
    @rule(
        ends=st.lists(st.tuples(some, outcomes), min_size=1, max_size=4),
        stale=some,
        follow=st.lists(new_jobs, max_size=1),
    )
    def settle(self, ends: list[tuple[int, Outcome]], stale: int, follow: list[NewJob]) -> None:
        """Runs end, and one settlement of any age is among them."""
        batch = {(claim := pick(self.held, n)).token: self.decide(claim, outcome) for n, outcome in ends}
        old = pick(self.claims, stale)
        batch.setdefault(old.token, self.decide(old, Released()))
        first, *others = batch.values()
        self.send([first._replace(new_jobs=tuple(follow)), *others])

    @precondition(lambda self: self.sent)
    @rule(which=st.lists(some, min_size=1, max_size=3))
    def settle_again(self, which: list[int]) -> None:
        """Settlements are sent again, as after a lost answer."""
        self.send({(sent := pick(self.sent, n)).token: sent for n in which}.values())

    @precondition(lambda self: self.model.jobs)
    @rule(which=st.lists(some, min_size=1, max_size=3))
    def cancel(self, which: list[int]) -> None:
        """Somebody cancels jobs, one of them unknown."""
        ids = list(dict.fromkeys([*(pick(self.model.jobs, n) for n in which), "nothing"]))
        expected = self.model.cancel(ids, reason="off")
        assert self.run(self.store.cancel(ids, reason="off")) == expected

    @rule(worker=some)
    def pulse(self, worker: int) -> None:
        """A worker is heard of."""
        name = pick(self.model.workers, worker)
        alive = self.model.pulse(name, lease=LEASE)
        held = self.model.running(name) if alive else []
        answer = self.run(self.store.pulse(name, WorkerStats(), lease=LEASE))
        assert (answer.alive, answer.now) == (alive, self.clock.now())
        assert answer.held == {job.token for job in held}
        assert answer.cancelling == {
            job.record.id for job in held if job.record.cancel_requested_at is not None
        }

    @rule(worker=some, how=st.sampled_from(["retire", "bury"]))
    def end(self, worker: int, how: str) -> None:
        """A worker stops, or is found dead."""
        name = pick(self.model.workers, worker)
        if how == "bury":
            self.run(self.store.bury([name]))
        else:
            self.run(self.store.retire(name))
        self.model.end([name], "dead" if how == "bury" else "stopped")

    @rule(worker=some)
    def rescue(self, worker: int) -> None:
        """A worker, alive or not, looks for orphans."""
        name, claim_id = pick(self.model.workers, worker), new_token()
        expected = self.model.rescue(name, claim_id)
        orphans = self.run(self.store.rescue(name, claim_id))
        assert {orphan.claim.token: (orphan.worker, orphan.blamed) for orphan in orphans} == expected
        for orphan in orphans:
            agree_on_claim(orphan.claim, self.model)
            assert orphan.started_at == self.model.jobs[orphan.claim.job_id].record.started_at
        self.claims += [orphan.claim for orphan in orphans]

    @rule(by=st.sampled_from([SECOND // 4, SECOND // 2, 3 * SECOND, LEASE - 1, LEASE + 1]))
    def wait(self, by: int) -> None:
        """Time passes."""
        self.clock.set(self.clock.now() + by)

    @rule(queue=st.sampled_from(QUEUES), pause=st.booleans())
    def pause_queue(self, queue: str, pause: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
        """Somebody pauses or resumes a queue."""
        if pause:
            self.run(self.store.pause_queue(queue, reason=None))
            self.model.paused.add(queue)
        else:
            self.run(self.store.resume_queue(queue))
            self.model.paused.discard(queue)

    @rule(
        name=st.sampled_from(NAMES),
        every=st.sampled_from([SECOND, 7 * SECOND]),
        payload=st.sampled_from(["{}", "[]"]),
        overlap=st.sampled_from(["skip", "allow"]),
    )
    def put_schedule(self, name: str, every: int, payload: str, overlap: Any) -> None:
        """Somebody declares a schedule, new, changed or as it was."""
        now = self.clock.now()
        trigger = Every(interval=every, start=now + every // 2)
        new = NewSchedule(
            name=name,
            task=TASKS[0],
            payload=payload,
            trigger=f"{trigger.interval} {trigger.start}",
            declared=f"every {every}",
            queue=QUEUES[0],
            overlap=overlap,
            misfire_window=10 * SECOND,
            fired_through=now,
            next_at=trigger.after(now),
        )
        changed = self.model.put_schedule(new)
        assert self.run(self.store.put_schedules([new])) == ([name] if changed else [])

    @precondition(lambda self: self.model.schedules)
    @rule(ahead=st.sampled_from([0, AHEAD]))
    def fire(self, ahead: int) -> None:
        """A worker looks for due schedules and fires them."""
        due = self.run(self.store.due_schedules(ahead=ahead, limit=10))
        plans = [
            schedules.fire(record, read_trigger(record), now=due.now, ahead=ahead) for record in due.schedules
        ]
        self.apply([plan for plan in plans if plan is not None])

    @precondition(lambda self: self.plans)
    @rule(which=some)
    def fire_again(self, which: int) -> None:
        """Another process comes with a plan that it made long ago."""
        plan = pick(self.plans, which)
        self.apply([replace(plan, jobs=tuple(replace(new, id=new_job_id()) for new in plan.jobs))])

    @precondition(lambda self: self.model.schedules)
    @rule(which=some, how=st.sampled_from(["pause", "resume", "delete"]))
    def change_schedule(self, which: int, how: str) -> None:
        """Somebody pauses, resumes or deletes a schedule."""
        name, now = pick(self.model.schedules, which), self.clock.now()
        if how == "pause":
            assert self.run(self.store.pause_schedule(name, reason=None))
            self.model.pause_schedule(name)
        elif how == "delete":
            assert self.run(self.store.delete_schedule(name))
            self.model.delete_schedule(name)
        else:
            next_at = self.model.schedules[name].next_at
            assert self.run(self.store.resume_schedule(name, next_at=next_at, fired_through=now))
            self.model.resume_schedule(name, next_at=next_at, fired_through=now)

    @invariant()
    def store_and_model_agree(self) -> None:
        """Everything that can be read is the same on both sides, and every step was legal."""
        self.before = self.run(agree(self.store, self.model, before=self.before))

    def decide(self, claim: Claim, outcome: Outcome) -> Settlement:
        """The real decision for an outcome."""
        started_at = self.model.jobs[claim.job_id].record.started_at
        rng = random.Random(0)
        return decide(claim, outcome, policy=POLICY, started_at=started_at, now=self.clock.now(), rng=rng)

    def send(self, batch: Iterable[Settlement]) -> None:
        """Settle on both sides."""
        settlements = list(batch)
        expected = self.model.settle(settlements)
        assert self.run(self.store.settle(settlements)) == expected
        for sent in settlements:
            tries = self.run(self.store.attempts(sent.token.job_id))
            assert [(sent.token.job_id, row.fence, row.outcome) for row in tries] == [
                row for row in self.model.tries if row[0] == sent.token.job_id
            ]
        self.sent += settlements

    def apply(self, plans: list[Firing]) -> None:
        """Fire on both sides."""
        expected = self.model.fire(plans)
        assert self.run(self.store.fire(plans)) == expected
        self.plans += plans


def pick(things: Iterable[T], number: int) -> T:
    """One of the things, by any number."""
    listed = list(things)
    return listed[number % len(listed)]


def read_trigger(record: ScheduleRecord) -> Every:
    """The trigger of a schedule that the machine declared."""
    interval, start = record.trigger.split()
    return Every(interval=int(interval), start=int(start))
