"""Everything there is in the model at one moment: the store, what each process knows, and the wire."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Literal, NamedTuple

from tests.protocol.rows import Ask, Job, Outcome, Settle, Store, Worker

NAMES = "AB"
_MIRROR = str.maketrans(NAMES, NAMES[::-1])

Phase = Literal["waiting", "begun", "running", "rescuing"]


class Held(NamedTuple):
    """What a process believes it owns; `begun` is a start that the store has not heard of yet."""

    job: int
    fence: int
    claim: int
    phase: Phase
    outcome: Outcome | Literal[""] = ""
    """Set once a settlement was sent and its answer is missing: the same one is then sent again."""


class Process(NamedTuple):
    """What one worker process knows; a crash forgets all of it."""

    id: str
    held: Held | None = None
    asking: Ask | None = None
    seen: int = -1
    """The schedule's `fired_through` when this process read it, until it has fired."""
    session: bool = True
    """Whether its connection is there; it reconnects when it likes."""

    @property
    def name(self) -> str:
        return self.id[0]


class State(NamedTuple):
    """The whole world at one moment."""

    store: Store
    processes: tuple[Process, ...]
    replica: Store | None = None
    """What a failover would bring back, once the replica has fallen behind."""
    wire: tuple[Ask | Settle, ...] = ()
    mishaps: int = 0


class Accepted(NamedTuple):
    """The store told somebody that this settlement is on record."""

    request: Settle


class TakenOver(NamedTuple):
    """A rescuer took a job from the worker that had it."""

    job: int
    own: bool


FAILED_OVER = "failed over"


def known(state: State, process: Process, store: Store | None = None) -> State:
    """The state after a process learned something, and perhaps wrote something."""
    number = NAMES.index(process.name)
    others = state.processes
    return state._replace(
        processes=(*others[:number], process, *others[number + 1 :]), store=store or state.store
    )


def sent(state: State, message: Ask | Settle) -> State:
    """The state with a request under way that will arrive at any time, or never."""
    return state._replace(wire=_in_order({*state.wire, message}))


def _in_order(messages: Iterable[Ask | Settle]) -> tuple[Ask | Settle, ...]:
    return tuple(sorted(messages, key=repr))


def mirrored(state: State) -> State:
    """The same world with the names of the two processes exchanged."""
    replica = state.replica
    return state._replace(
        store=_renamed_store(state.store),
        replica=None if replica is None else _renamed_store(replica),
        processes=tuple(_renamed_process(process) for process in reversed(state.processes)),
        wire=_in_order(_renamed_message(message) for message in state.wire),
    )


def _renamed(worker_id: str) -> str:
    return worker_id.translate(_MIRROR)


def _renamed_store(store: Store) -> Store:
    return store._replace(
        jobs=tuple(job._replace(worker=_renamed(job.worker)) for job in store.jobs),
        workers=tuple(sorted(row._replace(id=_renamed(row.id)) for row in store.workers)),
    )


def _renamed_process(process: Process) -> Process:
    asking = process.asking
    return process._replace(
        id=_renamed(process.id),
        asking=None if asking is None else asking._replace(worker=_renamed(asking.worker)),
    )


def _renamed_message(message: Ask | Settle) -> Ask | Settle:
    return message._replace(worker=_renamed(message.worker))


def registered(state: State, process: Process) -> State:
    """The state after a process forgot everything and registered under an id never used before."""
    used = _remembered_workers(state)
    new = next(f"{process.name}{number}" for number in count(1) if f"{process.name}{number}" not in used)
    return known(state, Process(new), state.store.with_worker(Worker(new)))


def holding(job: Job, ask: Ask) -> Held:
    """What a process knows once the store has answered its request."""
    phase: Phase = "rescuing" if ask.purpose == "rescue" else "running" if job.started else "waiting"
    return Held(ask.job, job.fence, job.claim, phase)


def request_of(process: Process, held: Held, outcome: Outcome) -> Settle:
    """The settlement that a process sends for the claim it holds."""
    return Settle(held.job, held.fence, held.claim, process.id, outcome)


def _stores(state: State) -> tuple[Store, ...]:
    return (state.store,) if state.replica is None else (state.store, state.replica)


def fresh_claim(state: State) -> int:
    """The smallest claim id that nothing in the whole state remembers."""
    used = {claim for store in _stores(state) for job in store.jobs for claim in (job.claim, job.settled)}
    used.update(message.claim for message in state.wire)
    for process in state.processes:
        used.update(known.claim for known in (process.held, process.asking) if known is not None)
    return next(number for number in count(1) if number not in used)


def _remembered_workers(state: State) -> set[str]:
    used = {process.id for process in state.processes} | {message.worker for message in state.wire}
    for store in _stores(state):
        used.update(row.id for row in store.workers)
        used.update(job.worker for job in store.jobs)
    return used


def tidy(state: State) -> State:
    """Forget worker rows that no process, no request and no running job can ever refer to again."""
    needed = {process.id for process in state.processes}
    needed.update(message.worker for message in state.wire)
    for store in _stores(state):
        needed.update(job.worker for job in store.jobs if job.state == "running")
    if all(row.id in needed for store in _stores(state) for row in store.workers):
        return state
    tidied = [
        store._replace(workers=tuple(row for row in store.workers if row.id in needed))
        for store in _stores(state)
    ]
    return state._replace(store=tidied[0], replica=tidied[1] if len(tidied) > 1 else None)
