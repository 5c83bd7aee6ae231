"""Random lives of a store, compared with the simple one after every step.

Needs Hypothesis. A machine drives any store through a function that runs its coroutines.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from duetime.model.ids import new_job_id, new_token
from duetime.model.job import Claim, JobId, Key, NewJob
from duetime.model.outcome import (
    Cancelled,
    Crashed,
    Failed,
    Interrupted,
    Outcome,
    Released,
    Settlement,
    Skipped,
    Snoozed,
    Succeeded,
    decide,
)
from duetime.model.retry import fixed
from duetime.model.stored.jobs import StoredJob
from duetime.model.time import SECOND
from duetime.model.worker import WorkerId, WorkerInfo, WorkerStats
from duetime.stores.base import ClaimRequest, Store
from duetime.testing.agreement import QUEUES, TASKS, agree, agree_on_claim
from duetime.testing.clock import FakeClock
from duetime.testing.schedule_model import ModelStore

T = TypeVar("T")

LEASE = 30 * SECOND
AHEAD = SECOND
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


keys = [
    *[None] * 4,
    Key(value="k"),
    Key(value="k", if_exists="replace"),
    Key(value="k", keep=SECOND),
    Key(value="k", period=2 * SECOND),
]
"""Most jobs have none; the others want the same."""


def with_key(job: NewJob, key: Key | None) -> NewJob:
    """A job under a key, if there is one."""
    return job._replace(key=key)


def new_job(**values: Any) -> NewJob:
    """A job with these values; of the class itself Hypothesis would draw the others as well."""
    return NewJob(**values)


new_jobs = st.builds(
    new_job,
    id=st.builds(new_job_id),
    payload=st.just("{}"),
    task=st.sampled_from([TASKS[0], *TASKS]),
    queue=st.sampled_from(QUEUES),
    priority=st.sampled_from([0, 5, 9]),
    delay=st.sampled_from([0, SECOND // 2, 5 * SECOND]),
    on_crash=st.sampled_from(["retry", "fail"]),
    retries=st.sampled_from([None, 0, 2]),
)
keyed_jobs = st.builds(with_key, new_jobs, st.sampled_from(keys))
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Succeeded, st.just('"done"')),
    st.builds(Failed, error=st.just("boom"), traceback=st.just("line 1"), final=st.booleans()),
    st.builds(Cancelled, st.just("stopped")),
    st.builds(Skipped, st.just("expired")),
    st.builds(Snoozed, st.just(SECOND)),
    st.builds(Released, st.sampled_from([0, SECOND])),
    st.builds(Interrupted, reason=st.just("shutdown")),
    st.builds(Crashed, worker=st.just("w"), started=st.booleans(), blamed=st.booleans()),
)


class StoreMachine(RuleBasedStateMachine):
    """A store under test beside the model of one: workers take jobs, run them and settle."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.run = world.run
        self.clock = FakeClock()
        self.store = self.run(world.make_store(self.clock))
        self.model = ModelStore(self.clock)
        self.claims: list[Claim] = []
        self.sent: list[Settlement] = []
        self.before: Mapping[JobId, StoredJob] = {}

    def teardown(self) -> None:
        """Let go of the store."""
        self.run(self.store.close())

    @property
    def held(self) -> list[Claim]:
        """The claims that still stand."""
        return [claim for claim in self.claims if self.model.holds(claim.token)]

    @property
    def living(self) -> list[WorkerId]:
        """The workers that are alive, at least one."""
        while not (alive := [name for name in self.model.workers if self.model.alive(name)]):
            self.hire()
        return alive

    @initialize(jobs=st.lists(keyed_jobs, min_size=3, max_size=6))
    def begin(self, jobs: list[NewJob]) -> None:
        """There is somebody to work, and something to do."""
        self.hire()
        self.hire()
        self.enqueue(jobs)

    @rule(jobs=st.lists(keyed_jobs, min_size=1, max_size=4))
    def enqueue(self, jobs: list[NewJob]) -> None:
        """Jobs go in, and go in again after a lost answer."""
        if not self.store.capabilities.one_order:
            # All of them in one part of the store, in which there is an order.
            jobs = [job._replace(on_crash="fail") for job in jobs]
        expected = self.model.enqueue(jobs)
        assert self.run(self.store.enqueue(jobs)) == expected
        expected = self.model.enqueue(jobs[:1])
        assert self.run(self.store.enqueue(jobs[:1])) == expected

    @rule(
        worker=some,
        shares=st.permutations([(queue, 3) for queue in QUEUES]),
        limit=st.integers(1, 5),
        ahead=st.sampled_from([0, 0, AHEAD]),
        unstarted=st.sampled_from([False, False, True]),
        below_priority=st.sampled_from([10, 10, 6]),
    )
    def claim(self, *, worker: int, shares: list[tuple[str, int]], **options: Any) -> None:
        """A worker asks for jobs, now and then one that is not alive."""
        demand = ClaimRequest(
            worker=pick(self.model.workers if worker % 8 == 0 else self.living, worker),
            claim_id=new_token(),
            queues=tuple(shares),
            tasks=TASKS[:1],
            **options,
        )
        expected = self.model.claim(demand)
        claims = self.run(self.store.claim(demand))
        assert [claim.token for claim in claims] == expected
        again = self.run(self.store.claims_under(demand.worker, demand.claim_id))
        assert {claim.token for claim in again} == set(expected)
        for claim in claims:
            agree_on_claim(claim, self.model)
        self.claims += claims

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
        batch.setdefault(old.token, self.decide(old, Succeeded('"stale"')))
        first, *others = batch.values()
        self.send([first._replace(new_jobs=tuple(follow)), *others])

    @rule(by=st.sampled_from([SECOND // 4, SECOND // 2, SECOND, 3 * SECOND]))
    def wait(self, by: int) -> None:
        """Time passes, and the living are heard of."""
        self.clock.set(self.clock.now() + by)
        for worker in self.living:
            self.pulse(worker)

    def hire(self) -> None:
        """A worker registers."""
        worker = f"w{len(self.model.workers)}"
        info = WorkerInfo(
            id=worker, host="h", host_key=None, pid=1, pid_started=None, version="0", queues=QUEUES, slots=1
        )
        self.run(self.store.register(info, lease=LEASE))
        self.model.register(worker, lease=LEASE)

    def pulse(self, worker: WorkerId) -> None:
        """A worker is heard of, and hears what it holds."""
        alive = self.model.pulse(worker, lease=LEASE)
        held = self.model.running(worker) if alive else []
        answer = self.run(self.store.pulse(worker, WorkerStats(), lease=LEASE))
        assert (answer.alive, answer.now) == (alive, self.clock.now())
        assert answer.held == {job.token for job in held}
        assert answer.cancelling == {
            job.record.id for job in held if job.record.cancel_requested_at is not None
        }

    @invariant()
    def store_and_model_agree(self) -> None:
        """Everything that can be read is the same on both sides, and every step was legal."""
        self.before = self.run(agree(self.store, self.model, before=self.before))

    def decide(self, claim: Claim, outcome: Outcome) -> Settlement:
        """The real decision for an outcome."""
        job = self.model.jobs.get(claim.job_id)
        started_at = None if job is None else job.record.started_at
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


def pick(things: Iterable[T], number: int) -> T:
    """One of the things, by any number."""
    listed = list(things)
    return listed[number % len(listed)]
