"""Decides when and how many jobs to claim.

A worker claims what is due for its free slots, looks once what falls due next, claims that a little ahead of its time,
and sleeps. How long it sleeps is decided in one place, `Fetcher._look_ahead`; hints and slots that come free wake it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import NamedTuple

from duetime.errors import StoreUnavailable
from duetime.model.ids import new_token
from duetime.model.job import Claim, JobId, Token
from duetime.model.outcome import Released
from duetime.model.time import SECOND, Instant, Micros
from duetime.runtime.claiming.held_claims import HeldClaims
from duetime.runtime.claiming.limits import LimitedClaimPolicy, vain_pause
from duetime.runtime.options import MAX_CONCURRENCY
from duetime.runtime.pacing import POLL_WITH_HINTS, POLL_WITHOUT_HINTS
from duetime.runtime.running.dispatcher import Dispatcher
from duetime.runtime.running.slots import Slots
from duetime.runtime.service import Service, WorkerContext
from duetime.runtime.store_clock import monotonic
from duetime.stores.base import ClaimRequest, Hint, LimitedClaims, NextDue

_PROMPT_ANSWER = 0.01
"""A worker that answers a hint within this many seconds is among the first and claims at once; the others look first."""


class TaskGroup(NamedTuple):
    """Tasks that are claimed together, because they need the same."""

    tasks: tuple[str, ...]
    in_child: bool = False


class Fetcher(Service):
    """Claims what is due as slots free up, and a little ahead what falls due next."""

    name = "fetcher"

    def __init__(
        self, context: WorkerContext, *, slots: Slots, dispatcher: Dispatcher, watched: bool = False
    ) -> None:
        """`watched`: heartbeats look for jobs that no hint announced, and report them by `expect`."""
        super().__init__(context.store, context.health)
        self._identity = context.identity
        self._handlers = context.handlers
        self._queues = tuple(context.options.queues)
        self._window = context.options.window
        self._time = context.time
        self._fleet = context.fleet
        self._slots = slots
        self._dispatcher = dispatcher
        dispatcher.on_free = self.slot_freed
        self._watched = watched
        self._paused = False
        self._look_first = False
        """Whether to look before claiming, because nothing was due at the last look."""
        self._caught_up = True
        """Whether no job lacked a slot at the last look, so that one more changes nothing."""
        self._backlog = False
        """Whether the last claim has brought all that it asked for, so that there is more to take before slots are free."""
        self._vain_claims = 0
        self._more_ahead = False
        """Whether there was more within the window than could be held."""
        self._ahead_from: Micros = 0
        """When to claim ahead again: what falls due until then shares a claim, unless it would be late."""
        self._on_its_way: str | None = None
        self._lost: set[str] = set()
        self._unanswered: list[str] = []
        """The claims whose answers were lost, and that are still to be looked up."""
        self.limited = LimitedClaimPolicy(self._handlers)
        self.hold = HeldClaims(
            context, slots.total, budget=self._may_hold, on_due=self._start_held, on_late=self._let_others
        )

    def take_hint(self, hint: Hint) -> None:
        """Look again because something may have changed."""
        wait = self._fleet.wait()
        # A vague hint is answered by a read first, so that idle processes do not queue for the write lock. So is any
        # hint by workers that let others go first, since a claim that finds nothing costs more than a look.
        if hint.kind == "jobs":
            self._look_first = self._look_first and wait > _PROMPT_ANSWER
            self._vain_claims = 0
        if hint.kind == "limits":
            self.limited.in_use = True
        if self.limited.in_use:
            self.limited.ask_again()
        self.wakeup.set_after(wait)

    def expect(self, wait: Micros) -> None:
        """Look shortly before a job falls due that a heartbeat has seen, or once a slot is free, in case its hint was lost."""
        if self._slots.free:
            self.wakeup.set_after(max(0, wait - self._window) / SECOND + self._spread())
        else:
            # The last look may have been before there was this job: held claims take slots without another.
            self._caught_up = False

    def expect_limited(self) -> None:
        """Ask for limited jobs, because a heartbeat says that limits are in use."""
        self.limited.in_use = True
        self.limited.ask_again()
        self.wakeup.set()

    def recall(self, strays: frozenset[Token]) -> frozenset[Token]:
        """Take up strays of claims whose answers were lost here, and return those that are not ours."""
        ours = frozenset(token for token in strays if token.claim_id in self._lost)
        self._unanswered += {token.claim_id for token in ours} - {*self._unanswered}
        if ours:
            self.wakeup.set()
        return strays - ours

    def forget_all(self) -> None:
        """Drop every claim, held or on its way: the lease they were taken under is lost."""
        self.hold.take_all()
        self._unanswered.clear()
        self._lost.clear()

    def holds(self, token: Token) -> bool:
        """Whether a claim is held unstarted, or may still be on its way here."""
        claim = self.hold.claims.get(token.job_id)
        return token.claim_id == self._on_its_way or (claim is not None and claim.token == token)

    def drop_lost(self, held: frozenset[Token], asked_at: Instant) -> None:
        """Forget unstarted claims that the store no longer has."""
        for claim in list(self.hold.claims.values()):
            # A claim that was being committed while the store was asked is not in its answer yet.
            if claim.token not in held and claim.claimed_at < asked_at - SECOND:
                self.take(claim.job_id)

    def take(self, job_id: JobId) -> Claim | None:
        """Let go of an unstarted claim, to end it otherwise."""
        claim = self.hold.claims.pop(job_id, None)
        if claim is not None and not self._slots.only_total:
            # While as many jobs of a queue are held as it has slots, this worker looks for no more of them.
            self.wakeup.set()
        return claim

    def give_back(self, job_id: JobId) -> bool:
        """Release one unstarted claim; False when it is not held."""
        claim = self.take(job_id)
        if claim is not None:
            self._release(claim)
        return claim is not None

    def give_back_all(self) -> None:
        """Release every unstarted claim."""
        for claim in self.hold.take_all():
            self._release(claim)

    def pause(self) -> None:
        """Claim nothing more, and release every unstarted claim."""
        self._paused = True
        self.give_back_all()
        # A claim that is on its way is given back by the next round.
        self.wakeup.set()

    def resume(self) -> None:
        """Claim again."""
        self._paused = self._look_first = False
        self.wakeup.set()

    async def round(self) -> float | None:
        """Claim what is due; when nothing is left, hold what comes next and sleep until shortly before the rest."""
        if self._unanswered:
            await self._recover_unanswered()
        if self._paused:
            self.give_back_all()
            return None
        if self._slots.free and self.hold.waiting:
            await self._start_waiting()
        limits_asked = self.limited.in_use and self.limited.goes_first()
        none_limited = limits_asked and not await self._claim_limited()
        found, wanted = 0, self._slots.free
        if wanted and not self._look_first:
            found = await self._claim_for_slots(wanted)
            if found == wanted and none_limited:
                # A worker with so much to do does not look ahead, but has to learn when limited jobs fall due.
                self.limited.look_ahead(await self._next_due(self._queues, tuple(self._handlers)))
        if self._to_prefetch():
            pause = await self._prefetch()
        elif wanted and found == wanted:
            pause = 0 if self._slots.free else None
        else:
            if self.limited.wanted:
                await self._claim_limited()
            pause = await self._look_ahead(keeps_up=0 < found < wanted)
        # A held claim may have taken the last slot since the look, and limited jobs wait for the next to come free.
        self._caught_up = self._caught_up and self._slots.free > 0
        return self.limited.sooner(pause) if self._slots.free else pause

    async def _claim_for_slots(self, wanted: int) -> int:
        """Fill free slots with due jobs, and return how many there were."""
        claims = await self._claim_due(wanted)
        self._slots.leave_line()
        self._vain_claims = 0 if claims else self._vain_claims + 1
        self._backlog = False
        if len(claims) == wanted:
            # Only such jobs can be claimed without being marked as started.
            cpu = self._slots.cpu_tasks
            self._backlog = any(c.on_crash == "retry" and not c.crashes and c.task not in cpu for c in claims)
            self._caught_up = False
        elif claims:
            # They start before the next request; of a backlog, the next part is to be on its way while they run.
            await asyncio.sleep(0)
        return len(claims)

    async def _claim_due(self, limit: int, *, below_priority: int = 10) -> list[Claim]:
        claims: list[Claim] = []
        for group in self._groups():
            most = min(limit - len(claims), self._slots.children_free if group.in_child else self._slots.free)
            if most <= 0:
                continue
            # What one group brings is started before the next asks, so that it sees which slots are left.
            found = await self._claim(self._request(group, most, below_priority=below_priority))
            self._begin(found.claims)
            claims += found.claims
        return claims

    def _to_prefetch(self) -> int:
        """Return how many due jobs to claim before a slot is free: as many as start within a moment, once half of them have.

        It makes the drain of short jobs faster: without it, slots are empty while each claim is under way.
        """
        if not self._backlog or self.limited.waits_for_slots:
            return 0
        most, waiting = self._dispatcher.speed.ending_soon(), len(self.hold.waiting)
        return most - waiting if waiting * 2 < most else 0

    async def _prefetch(self) -> float | None:
        """While these jobs run, take the next ones, which will soon find slots."""
        wanted = self._to_prefetch()
        plain = next(group for group in self._groups() if not group.in_child)
        claims = (await self._claim(self._request(plain, wanted, hold=True))).claims
        self._backlog = len(claims) == wanted
        self.hold.add_due(claims)
        self._fill_slots()
        return None if self._backlog and not self._to_prefetch() else 0

    async def _look_ahead(self, *, keeps_up: bool = False) -> float | None:
        """Look what falls due next, claim it if it is near, and decide how long to sleep.

        `keeps_up`: all that was due has just been claimed, and slots are left.
        """
        self._caught_up = self._slots.free > 0
        if self._caught_up:
            self._slots.leave_line()
        else:
            self._slots.line_up()
        if not self._caught_up and (not self.hold.room or (self._backlog and self._dispatcher.speed.short)):
            # What comes next cannot be held, or is due and of a kind that ends soon: the slot that comes free asks for it.
            return None
        self._look_first = True
        idle = None if self._watched and self._store.hears_others else self._poll_pause()
        queues = [queue for queue in self._queues if self._queue_room_to_hold(queue) > 0]
        tasks = [name for group in self._groups() if self._room_to_hold(group) > 0 for name in group.tasks]
        if not queues or not tasks:
            return idle
        found = await self._next_due(queues, tasks)
        self.limited.look_ahead(found)
        if found.due_at is None:
            return idle
        wait = found.due_at - found.now
        if wait <= 0:
            # They follow one another faster than they can be asked for.
            if keeps_up and self.hold.roomy and self._ahead_from <= monotonic():
                await self._claim_ahead()
            self._look_first = self._caught_up = False
            return vain_pause(self._vain_claims - 1) / SECOND if self._slots.free else None
        pause = self._wait_to_claim_ahead(wait)
        if not pause:
            if await self._claim_ahead():
                # Jobs that it could not hold, or that may not be claimed ahead, are found by the next look.
                return 0
            pause = wait
        self._look_first = pause < wait
        # All idle workers know of the same job.
        seconds = pause / SECOND + (self._spread() if wait > self._window else 0)
        return seconds if idle is None else min(idle, seconds)

    def _wait_to_claim_ahead(self, wait: Micros) -> Micros:
        """Return how long to wait before the next claim ahead, if the next job is due after `wait`.

        It comes before a job is due, and no sooner than what comes after it can be taken along. This keeps lateness low
        at a steady rate: jobs that follow each other share a claim, and each starts on time.
        """
        if self._more_ahead and not self.hold.roomy:
            # Once enough of what is held has started there is room again; what is due sooner is claimed when it is.
            return wait
        early = max(0, self._ahead_from - monotonic())
        # Not the whole window: due times are often round, and what is held starts at the very moment before.
        return 0 if wait <= early else max(early, wait - self._window * 15 // 16)

    def _spread(self) -> float:
        return self._fleet.wait(at_most=self._window / 2 / SECOND)

    def _poll_pause(self) -> float:
        """Return after how many seconds to look for what no hint has told."""
        return self._fleet.pause(POLL_WITH_HINTS if self._store.hears_others else POLL_WITHOUT_HINTS)

    def _may_hold(self) -> int:
        """How many claims to hold: one for each slot or, if that is more, this worker's share of what ends in a moment.

        The share wins a thousand schedules in phase.
        """
        return max(self._slots.total, self._dispatcher.speed.ending_soon() // self._fleet.workers)

    async def _claim_ahead(self) -> bool:
        """Take what falls due within the window, and tell whether there was any that may be taken ahead."""
        taken = 0
        # Not whether there is room afterwards: some may have started, and made room, since it was asked for.
        self._more_ahead = not self.hold.room
        for group in self._groups():
            # More than there are slots only of tasks whose own runs are short: others would wait here for a slot.
            tasks, room = group.tasks, self._slots.total - len(self.hold.claims)
            short = self._dispatcher.speed.short_tasks(tasks)
            if room <= 0 or short == tasks:
                tasks, room = short, self.hold.room
            room = min(room, self.hold.room, self._room_to_hold(group))
            if room <= 0 or not tasks:
                continue
            request = self._request(group._replace(tasks=tasks), room, hold=True, ahead=self._window)
            claims = (await self._claim(request)).claims
            self.hold.add(claims)
            taken += len(claims)
            self._more_ahead = self._more_ahead or len(claims) == room
        self._ahead_from = 0 if self._more_ahead else monotonic() + self._window // 2
        return taken > 0

    async def _claim_limited(self) -> int:
        """Start what limits let through, and tell how many; such jobs are never taken in advance."""
        started = 0
        with self.limited.turn(at_latest=self._poll_pause()):
            for group in self._groups():
                asked = self._slots.children_free if group.in_child else self._slots.free
                request = self._request(group, asked)
                if asked <= 0 or not request.queues:
                    self.limited.starved = True
                    continue
                # Noted before the answer, too: a slot that is freed in the meantime was not asked for.
                self.limited.queue_full |= self._slots.any_full(self._queues)
                found = await self._claim(request, limited=True)
                self._begin(found.claims)
                started += len(found.claims)
                self.limited.answered(found, asked=asked, now=self._time.now())
                self.limited.queue_full |= self._slots.any_full(self._queues)
        return started

    def slot_freed(self) -> None:
        """Use slots that jobs have left."""
        if self.limited.in_use:
            self.limited.slot_freed()
        if self._dispatcher.speed.short:
            self._fill_slots()
            if not self._slots.free and not self._to_prefetch():
                return
        # What the last look has found is awaited, and one more slot changes nothing where any will do for any job.
        caught_up = self._caught_up and self._slots.only_total and not self.hold.waiting
        if not caught_up or self.limited.wanted:
            self.wakeup.set()

    async def _start_waiting(self) -> None:
        """Give free slots to held claims whose time has come, after more urgent jobs that are due."""
        claim = self.hold.first_waiting()
        if claim is not None and claim.priority > 0 and not self._dispatcher.speed.short:
            await self._claim_due(self._slots.free, below_priority=claim.priority)
        self._fill_slots()

    def _fill_slots(self) -> None:
        if self._slots.free and self.hold.waiting and not (self.stopping or self._paused):
            self.hold.hand_out(self._slots.free)

    def _start_held(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        """Start held claims, and return those that found no slot; claim more ahead if there was more, and now is room."""
        if self.stopping or self._paused:
            return claims
        refused = self._dispatcher.start_all(claims, unmarked=True)
        if len(refused) < len(claims) and self._more_ahead and self.hold.roomy:
            self._more_ahead = False
            self._look_first = True
            self.wakeup.set()
        return refused

    def _begin(self, claims: Sequence[Claim], *, unmarked: bool = False) -> None:
        # While the store was asked, a held claim may have taken the slot, or the worker may have been stopped.
        if not (self.stopping or self._paused):
            claims = self._dispatcher.start_all(claims, unmarked=unmarked)
        for claim in claims:
            self._release(claim)

    def _let_others(self, claim: Claim) -> None:
        """Release a claim that found no slot here; claim no more ahead until the speed of runs is known again."""
        self._dispatcher.speed.distrust(claim.task)
        self._backlog = False
        self._release(claim)

    def _release(self, claim: Claim) -> None:
        self._dispatcher.settle(claim, Released())

    def _groups(self) -> Sequence[TaskGroup]:
        """Return the tasks to ask for; those of child processes apart, so that no more come than children are free.

        In random order, because with few slots the first may take them all.
        """
        cpu: list[str] = []
        plain: list[str] = []
        for name, handler in self._handlers.items():
            (cpu if handler.options.cpu else plain).append(name)
        self._slots.cpu_tasks = frozenset(cpu)
        groups = [TaskGroup(tuple(plain))] if plain or not cpu else []
        if cpu:
            groups.append(TaskGroup(tuple(cpu), in_child=True))
            random.shuffle(groups)
        return groups

    def _room_to_hold(self, group: TaskGroup) -> int:
        """How many claims of a group may be held until they are due: no job waits for a child process."""
        if not group.in_child:
            return max(self._slots.total, self.hold.room)
        held = sum(claim.task in self._slots.cpu_tasks for claim in self.hold.claims.values())
        return self._slots.children_free - held

    def _queue_room_to_hold(self, queue: str) -> int:
        """How many more jobs of a queue may be held, by the limit of the queue."""
        left = self._slots.left(queue)
        if left is None:
            return MAX_CONCURRENCY
        return left - sum(claim.queue == queue for claim in self.hold.claims.values())

    def _request(
        self, group: TaskGroup, limit: int, *, hold: bool = False, ahead: Micros = 0, below_priority: int = 10
    ) -> ClaimRequest:
        """Return a request for due jobs to start, or to `hold` until a slot is free, or for jobs due within `ahead` to hold."""
        room = self._queue_room_to_hold if hold else self._slots.room
        # In random order: a full queue must not starve the others.
        queues = random.sample(self._queues, len(self._queues))
        return ClaimRequest(
            worker=self._identity.info.id,
            claim_id=new_token(),
            queues=tuple((queue, most) for queue in queues if (most := min(limit, room(queue))) > 0),
            limit=limit,
            tasks=group.tasks,
            ahead=ahead,
            unstarted=hold and not ahead,
            below_priority=below_priority,
            limits=self.limited.limits,
        )

    async def _claim(self, request: ClaimRequest, *, limited: bool = False) -> LimitedClaims:
        """Claim jobs without limits or under limits; if the answer is lost, the claims are looked up later."""
        if not request.queues:
            return LimitedClaims([], again_at=None)
        self._on_its_way = request.claim_id
        sent = monotonic()
        try:
            if limited:
                found = await self._store.claim_limited(request)
            else:
                found = LimitedClaims(await self._store.claim(request), again_at=None)
        except StoreUnavailable:
            self._unanswered.append(request.claim_id)
            self._lost.add(request.claim_id)
            raise
        finally:
            self._on_its_way = None
        if request.worker != self._identity.info.id:
            # The lease was lost meanwhile: these claims are for others to take over.
            return found._replace(claims=[])
        if found.claims:
            self._time.observe(sent, monotonic(), found.claims[0].claimed_at)
        return found

    async def _next_due(self, queues: Sequence[str], tasks: Sequence[str]) -> NextDue:
        """Ask when the next job falls due, and learn the time: no answer carries it faster than that of a read."""
        sent = monotonic()
        found = await self._store.next_due(queues, tasks)
        self._time.observe(sent, monotonic(), found.now)
        return found

    async def _recover_unanswered(self) -> None:
        """Find out what a claim had handed out before its answer was lost, unless the lease is lost meanwhile."""
        while self._unanswered:
            claim_id, worker = self._unanswered[0], self._identity.info.id
            found = await self._store.claims_under(worker, claim_id)
            if worker != self._identity.info.id:
                return
            self._unanswered.remove(claim_id)
            unknown = self._dispatcher.unknown(claim.token for claim in found)
            for claim in found:
                if claim.token not in unknown or self.holds(claim.token):
                    continue
                if claim.due_at > claim.claimed_at:
                    self.hold.add([claim])
                else:
                    self._begin([claim], unmarked=True)
