"""Duetime's claim protocol as a state space: two worker processes, one store, and every mishap.

Bounds. Two processes, each holding one claim at a time, share one or two jobs and up to two occurrences
of one schedule. What could repeat for ever is bounded by one number, `Scope.mishaps`: at most that many of
these happen in one history, in any mix and order: a process crashes; a process pauses until its lease has
run out; a connection is lost; an answer is lost; a request or a pulse arrives late; a task fails and is retried; a claim made
ahead is released; a replica falls behind, to which the store may then fail over. All else (reading, claiming,
starting, settling, pulsing, reconnecting, marking dead, taking over, pruning, the lease of a process that is gone) is
free. On one host a process that is gone can be seen to be gone, before its lease ends.
States that differ only in which process is called A are searched once.

Claim ids and worker ids are random in a real store. Here a fresh one is the smallest that nobody in the whole
state remembers; since only equality matters, this stands for every never-used id, and keeps the space finite.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.protocol import rows
from tests.protocol.rows import Ask, Job, Outcome, Rules, Settle, Store, Worker
from tests.protocol.space import Step
from tests.protocol.world import (
    FAILED_OVER,
    NAMES,
    Accepted,
    Held,
    Process,
    State,
    TakenOver,
    fresh_claim,
    holding,
    known,
    mirrored,
    registered,
    request_of,
    sent,
    tidy,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """How much world to search."""

    mishaps: int = 2
    jobs: int = 1
    occurrences: int = 0
    ahead: bool = True
    late: bool = True
    failover: bool = False
    prune: bool = False
    sessions: bool = False
    """Whether connections are lost."""
    one_host: bool = False
    """Whether it is seen when a process is gone."""


Steps = Iterator[Step[State]]


class ClaimProtocol:
    """Every step that the rules allow within the scope."""

    def __init__(self, rules: Rules, scope: Scope) -> None:
        self.rules = rules
        self.scope = scope

    def initial(self) -> State:
        """Both workers are up and the first jobs are accepted."""
        processes = tuple(Process(f"{name}1") for name in NAMES)
        store = Store(
            jobs=(Job(),) * self.scope.jobs,
            workers=tuple(Worker(process.id) for process in processes),
            made=(0,) * self.scope.occurrences,
        )
        return State(store, processes)

    def done(self, state: State) -> bool:
        """True when every occurrence has fired and every job has ended."""
        fired = state.store.fired_through == self.scope.occurrences
        return fired and all(job.terminal for job in state.store.jobs)

    def steps(self, state: State) -> Steps:
        """All that can happen next."""
        for step in self._steps(state):
            if step.state.mishaps <= self.scope.mishaps:
                yield step._replace(state=tidy(step.state))

    def twin(self, state: State) -> State:
        """The same world with the two processes' names exchanged: whatever can happen here can happen there."""
        return mirrored(state)

    def _steps(self, state: State) -> Steps:
        for process in state.processes:
            yield from self._fire(state, process)
            if process.asking is not None:
                yield from self._look_up(state, process, process.asking)
            elif process.held is not None:
                yield from self._start(state, process, process.held)
                yield from self._settle(state, process, process.held)
            else:
                yield from self._claim(state, process)
                yield from self._take_over(state, process)
            yield from self._pulse(state, process)
            yield from self._mark_dead(state, process)
            yield from self._crash(state, process)
            yield from self._disconnect(state, process)
        yield from self._lapse(state)
        yield from self._deliver(state)
        yield from self._fail_over(state)
        yield from self._prune(state)

    def _spent(self, state: State) -> bool:
        """True when no more mishaps are allowed; asked where building one just to drop it costs most."""
        return state.mishaps >= self.scope.mishaps

    def _fire(self, state: State, process: Process) -> Steps:
        """Read the schedule, and in a later step fire from what was read."""
        store, name, seen = state.store, process.name, process.seen
        if seen < 0:
            if store.fired_through < self.scope.occurrences:
                now = process._replace(seen=store.fired_through)
                yield Step(f"worker {name} reads the schedule: fired through {now.seen}", known(state, now))
            return
        after = rows.fire(self.rules, store, seen)
        done = process._replace(seen=-1)
        if after is None:
            yield Step(f"worker {name} finds that occurrence {seen + 1} was fired", known(state, done))
            return
        said = f"worker {name} fires occurrence {seen + 1}"
        if len(after.jobs) > len(store.jobs):
            said += f", which makes job {len(after.jobs)}"
        yield Step(said, known(state, done, after))
        yield _mishap(f"{said}; the answer is lost", known(state, process, after))

    def _claim(self, state: State, process: Process) -> Steps:
        name = process.name
        for number, job in enumerate(state.store.jobs):
            if job.state != "pending":
                continue
            for ahead in (False, True) if self._may_claim_ahead(job) else (False,):
                ask = Ask(number, fresh_claim(state), process.id, "ahead" if ahead else "due")
                asking = process._replace(asking=ask)
                early = " ahead" if ahead else ""
                after = rows.claim(self.rules, state.store, ask)
                if after is not None:
                    held = holding(after.jobs[number], ask)
                    said = f"worker {name} claims job {number + 1}{early} {_claim_of(held)}"
                    yield Step(said, known(state, process._replace(held=held), after))
                    yield _mishap(f"{said}; the answer is lost", known(state, asking, after))
                if self.scope.late:
                    said = f"worker {name} asks for job {number + 1}{early}, and the request is held up"
                    yield _mishap(said, sent(known(state, asking), ask))

    def _may_claim_ahead(self, job: Job) -> bool:
        """A start is written down after the fact, so a task that must not run twice starts with its claim."""
        careful = self.rules.on_crash == "fail" and self.rules.fail_claims_are_starts
        return self.scope.ahead and job.crashes == 0 and not careful

    def _look_up(self, state: State, process: Process, ask: Ask) -> Steps:
        """Ask for the answer that was lost, by claim id."""
        job, name = state.store.job(ask.job), process.name
        mine = job.state == "running" and (job.claim, job.worker) == (ask.claim, ask.worker)
        if not self.rules.lost_answers_looked_up:
            said = f"worker {name} forgets that it asked"
            yield Step(said, known(state, process._replace(asking=None)))
        elif mine:
            held = holding(job, ask)
            said = f"worker {name} looks its claim up and finds job {ask.job + 1} {_claim_of(held)}"
            yield Step(said, known(state, process._replace(asking=None, held=held)))
        else:
            said = f"worker {name} looks its claim up and finds nothing"
            yield Step(said, known(state, process._replace(asking=None)))

    def _start(self, state: State, process: Process, held: Held) -> Steps:
        """Begin at the due time without asking anybody, and write it down afterwards."""
        said, store = f"worker {process.name}", state.store
        job = store.job(held.job)
        if held.outcome:
            return
        if held.phase == "waiting":
            begun = process._replace(held=held._replace(phase="begun"))
            after = store if job.pruned else store.with_job(held.job, job._replace(runs=job.runs + 1))
            yield Step(f"{said} starts job {held.job + 1}", known(state, begun, after))
        elif held.phase == "begun":
            noted = rows.note_start(self.rules, store, request_of(process, held, "succeeded"))
            if noted is None:
                lost = process._replace(held=None)
                yield Step(f"{said} finds that job {held.job + 1} is lost and drops it", known(state, lost))
            else:
                running = process._replace(held=held._replace(phase="running"))
                yield Step(f"{said} notes the start of job {held.job + 1}", known(state, running, noted))

    def _settle(self, state: State, process: Process, held: Held) -> Steps:
        for outcome in self._outcomes(held):
            # An outcome that lets the job go round again counts as a mishap, or histories would never end.
            again = outcome in ("retry", "released") and not held.outcome
            if again and self._spent(state):
                continue
            now = state._replace(mishaps=state.mishaps + again)
            request = request_of(process, held, outcome)
            after = rows.settle(self.rules, now.store, request)
            said = f"worker {process.name} {_verb(outcome)} job {held.job + 1} {_claim_of(held)}"
            done = process._replace(held=None)
            unsure = process._replace(held=held._replace(outcome=outcome))
            if after is None:
                yield Step(f"{said} and is refused", known(now, done), again)
            else:
                event = Accepted(request)
                yield Step(said, known(now, done, after), again, event)
                yield _mishap(f"{said}; the answer is lost", known(now, unsure, after), event)
            if self.scope.late:
                yield _mishap(f"{said}, and the request is held up", sent(known(now, unsure), request))

    def _outcomes(self, held: Held) -> tuple[Outcome, ...]:
        if held.outcome:
            return (held.outcome,)
        match held.phase:
            case "waiting":
                return ("released",)
            case "rescuing":
                return ("lost",)
            case "begun" | "running":
                return ("succeeded",) if self.rules.on_crash == "fail" else ("succeeded", "retry")

    def _pulse(self, state: State, process: Process) -> Steps:
        after = rows.pulse(self.rules, state.store, process.id)
        if after is None:
            fresh = registered(state, process)
            new = fresh.processes[NAMES.index(process.name)].id
            said = f"worker {process.name} pulses, is not alive, drops all and registers as {new}"
            yield Step(said, fresh)
        elif after != state.store:
            yield Step(f"worker {process.name} pulses", known(state, process, after))

    def _mark_dead(self, state: State, process: Process) -> Steps:
        living = {other.id: other for other in state.processes}
        for row in state.store.workers:
            if not row.alive or row.id == process.id:
                continue
            said, other = f"worker {process.name} marks worker {row.id} dead", living.get(row.id)
            gone = self.scope.one_host and other is None
            if gone and row.leased:
                said += ", whose process is gone"
            elif self.rules.lost_session_is_death and other is not None and not other.session and row.leased:
                said += ", whose connection is gone"
            elif row.leased:
                continue
            yield Step(said, state._replace(store=rows.bury(state.store, row, gone=gone)))

    def _take_over(self, state: State, process: Process) -> Steps:
        """Rescue a job of a dead worker, or one that the store says is mine and I know nothing of."""
        store, name = state.store, process.name
        if self.rules.claim_needs_alive and not store.alive(process.id):
            return
        for number, job in enumerate(store.jobs):
            own = job.worker == process.id
            lost = self.rules.unknown_claims_returned if own else not store.alive(job.worker)
            if job.state != "running" or not lost:
                continue
            ask = Ask(number, fresh_claim(state), process.id, "rescue")
            after = rows.take_over(self.rules, store, ask)
            held = holding(after.jobs[number], ask)
            whose = "itself" if own else f"worker {job.worker}"
            said = f"worker {name} takes job {number + 1} over from {whose} {_claim_of(held)}"
            event = TakenOver(number, own)
            yield Step(said, known(state, process._replace(held=held), after), event=event)
            asking = process._replace(asking=ask._replace(claim=held.claim))
            yield _mishap(f"{said}; the answer is lost", known(state, asking, after), event)

    def _crash(self, state: State, process: Process) -> Steps:
        if self._spent(state):
            return
        fresh = registered(state, process)
        new = fresh.processes[NAMES.index(process.name)].id
        yield _mishap(f"worker {process.name} crashes and comes back as {new}", fresh)

    def _disconnect(self, state: State, process: Process) -> Steps:
        if not process.session:
            yield Step(f"worker {process.name} reconnects", known(state, process._replace(session=True)))
        elif self.scope.sessions and not self._spent(state):
            yield _mishap(
                f"worker {process.name} loses its connection and lives on",
                known(state, process._replace(session=False)),
            )

    def _lapse(self, state: State) -> Steps:
        current = {process.id for process in state.processes}
        for row in state.store.workers:
            gone = row.id not in current
            if not gone and self._spent(state):
                continue
            if row.alive and row.leased:
                after = state._replace(store=rows.lapse(state.store, row.id))
                if gone:
                    yield Step(f"the lease of worker {row.id}, which is gone, runs out", after)
                else:
                    yield _mishap(f"worker {row.id[0]} pauses until its lease has run out", after)
            elif gone:
                after_pulse = rows.pulse(self.rules, state.store, row.id)
                if after_pulse is not None:
                    yield _mishap(
                        f"a late pulse of worker {row.id} arrives", state._replace(store=after_pulse)
                    )

    def _deliver(self, state: State) -> Steps:
        for message in state.wire:
            rest = state._replace(wire=tuple(other for other in state.wire if other != message))
            if isinstance(message, Ask):
                claimed = rows.claim(self.rules, state.store, message)
                said = f"the request of worker {message.worker} for job {message.job + 1} arrives late"
                yield _late(said, rest, claimed)
            else:
                settled = rows.settle(self.rules, state.store, message)
                said = (
                    f"a late settlement arrives: worker {message.worker} {_verb(message.outcome)}"
                    f" job {message.job + 1} {_claim_of(message)}"
                )
                yield _late(said, rest, settled, Accepted(message))

    def _fail_over(self, state: State) -> Steps:
        """Lose the last writes: all since some moment, which is the one at which the replica fell behind."""
        if state.replica is not None:
            said = "the store fails over to its replica and loses its last writes"
            yield Step(said, state._replace(store=state.replica, replica=None), luck=True, event=FAILED_OVER)
        elif self.scope.failover:
            yield _mishap("the replica falls behind", state._replace(replica=state.store))

    def _prune(self, state: State) -> Steps:
        if not self.scope.prune:
            return
        for number, job in enumerate(state.store.jobs):
            if job.terminal and not job.pruned:
                after = state.store.with_job(number, job._replace(pruned=True))
                yield Step(f"job {number + 1} is pruned", state._replace(store=after))


def _mishap(sentence: str, state: State, event: Accepted | TakenOver | None = None) -> Step[State]:
    return Step(sentence, state._replace(mishaps=state.mishaps + 1), luck=True, event=event)


def _late(sentence: str, state: State, after: Store | None, event: Accepted | None = None) -> Step[State]:
    if after is None:
        return Step(f"{sentence} and is refused", state, luck=True)
    return Step(sentence, state._replace(store=after), luck=True, event=event)


def _claim_of(claim: Held | Settle) -> str:
    return f"(fence {claim.fence}, claim c{claim.claim})"


def _verb(outcome: Outcome) -> str:
    return {
        "succeeded": "records success of",
        "retry": "records failure, to be retried, of",
        "released": "releases",
        "lost": "records the loss of",
    }[outcome]
