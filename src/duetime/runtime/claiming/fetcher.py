"""Decides when and how many jobs to claim.

A worker claims what is due for its free slots, looks once what falls due next, claims that a little ahead of its time,
and sleeps. How long it sleeps is decided in one place, `Fetcher._look_ahead`; hints and slots that come free wake it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence

from duetime.model.job import Claim, JobId, Token
from duetime.model.outcome import Released
from duetime.model.time import SECOND, Instant, Micros
from duetime.runtime.claiming.claim_requests import ClaimGroup, ClaimRequests
from duetime.runtime.claiming.held_claims import HeldClaims
from duetime.runtime.claiming.limits import LimitedClaimPolicy
from duetime.runtime.fleet_pacing import FleetPacing
from duetime.runtime.identity import WorkerIdentity
from duetime.runtime.running.dispatcher import Dispatcher
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.slots import Slots
from duetime.runtime.service import Service, ServiceHealth
from duetime.runtime.store_clock import StoreClock, monotonic
from duetime.stores.base import Hint, Store

POLL_WITH_HINTS = 10.0
"""Seconds between looks when hints of other processes arrive and no heartbeat looks: only insurance."""
POLL_WITHOUT_HINTS = 0.25
"""Seconds between looks when they do not."""

_PROMPT_ANSWER = 0.01
"""A worker that answers a hint within this many seconds is among the first and claims at once; the others look first."""
_EMPTY_PAUSE = 0.02
_LONGEST_EMPTY_PAUSE = 0.5
"""Bounds of the pause after claims that keep coming back empty because other workers were faster."""


class Fetcher(Service):
    """Claims what is due as slots free up, and a little ahead what falls due next."""

    name = "fetcher"

    def __init__(
        self,
        *,
        store: Store,
        identity: WorkerIdentity,
        handlers: Mapping[str, Handler],
        queues: tuple[str, ...],
        slots: Slots,
        dispatcher: Dispatcher,
        time: StoreClock,
        health: ServiceHealth,
        fleet: FleetPacing,
        window: Micros,
        watched: bool = False,
    ) -> None:
        """`watched`: heartbeats look for jobs that no hint announced, and report them by `expect`."""
        super().__init__(store, health)
        self._queues = queues
        self._slots = slots
        self._dispatcher = dispatcher
        dispatcher.on_free = self.slot_freed
        self._time = time
        self._fleet = fleet
        self._window = window
        self._watched = watched
        self._paused = self._in_round = self._freed = self._look_first = False
        self._content = False
        """Whether no job lacked a slot at the last look, so that one more changes nothing."""
        self._backlog = False
        """Whether the last claim has brought all that it asked for, so that there may be more."""
        self._holdable = False
        """Whether it has brought jobs that may be taken before a slot is free."""
        self._empty_claims = 0
        self._only_long = False
        """Whether all jobs that the last claim ahead left are of tasks with long runs, so that each needs a slot of its own."""
        self._ahead = PrefetchTiming(window)
        self.limited = LimitedClaimPolicy(handlers)
        self.hold = HeldClaims(
            budget=self._may_hold,
            slots=slots.total,
            window=window,
            time=time,
            on_due=self._start_held,
            on_late=self._let_others,
        )
        self._requests = ClaimRequests(
            store,
            identity=identity,
            time=time,
            handlers=handlers,
            queues=queues,
            slots=slots,
            held=self.hold,
            limits=self.limited.limits,
        )

    def take_hint(self, hint: Hint) -> None:
        """Look again because something may have changed."""
        wait = self._fleet.wait()
        # A vague hint is answered by a read first, so that idle processes do not queue for the write lock. So is any
        # hint by workers that let others go first, since a claim that finds nothing costs more than a look.
        if hint.kind == "jobs":
            self._look_first = self._look_first and wait > _PROMPT_ANSWER
            self._empty_claims = 0
        if hint.kind == "limits":
            self.limited.learn(in_use=True)
        self.limited.ask_again()
        self.wakeup.set_after(wait)

    def expect(self, wait: Micros) -> None:
        """Look shortly before a job falls due that a heartbeat has seen, or once a slot is free, in case its hint was lost."""
        if self._slots.free:
            early = max(0, wait - self._window) / SECOND
            self.wakeup.set_after(early + self._fleet.wait(at_most=self._window / 2 / SECOND))
        else:
            # The last look may have been before there was this job: held claims take slots without another.
            self._content = False

    def learn_limits(self) -> None:
        """Ask for limited jobs from now on, because the store says there are some."""
        self.limited.learn(in_use=True)
        if self.limited.wanted:
            self.wakeup.set()

    def recall(self, strays: frozenset[Token]) -> frozenset[Token]:
        """Take up strays of claims whose answers were lost here, and return those that are not ours."""
        ours = self._requests.recall(strays)
        if ours:
            self.wakeup.set()
        return strays - ours

    def forget_all(self) -> None:
        """Drop every claim, held or on its way: the lease they were taken under is lost."""
        self.hold.take_all()
        self._requests.forget()

    def holds(self, token: Token) -> bool:
        """Whether a claim is held unstarted, or may still be on its way here."""
        claim = self.hold.get(token.job_id)
        return (claim is not None and claim.token == token) or self._requests.awaits(token)

    def drop_lost(self, held: frozenset[Token], asked_at: Instant) -> None:
        """Forget unstarted claims that the store no longer has."""
        for claim in self.hold.claims:
            # A claim that was being committed while the store was asked is not in its answer yet.
            if claim.token not in held and claim.claimed_at < asked_at - SECOND:
                self.take(claim.job_id)

    def take(self, job_id: JobId) -> Claim | None:
        """Let go of an unstarted claim, to end it otherwise."""
        claim = self.hold.take(job_id)
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
        self._in_round, self._content, self._freed = True, False, False
        try:
            if self._requests.unanswered:
                await self._recover_unanswered()
            if self._paused:
                self.give_back_all()
                return None
            pause = await self._claim()
        finally:
            self._in_round = False
        # A held claim may have taken the last slot since the look, and limited jobs wait for the next to come free.
        self._content = self._content and self._slots.free > 0
        self._offer_freed()
        return self.limited.sooner(pause) if self._slots.free and not self._paused else pause

    async def _claim(self) -> float | None:
        """Claim for the slots that are free, then for those that will be; return how long to sleep."""
        keeps_up = False
        if self._slots.free and self.hold.waiting:
            await self._start_waiting()
        if self.limited.goes_first() and not await self._claim_limited() and self._backlog:
            # A worker with so much to do does not look ahead, but has to learn when limited jobs fall due.
            tasks = [name for group in self._requests.groups() for name in group.tasks]
            self.limited.look_ahead(await self._requests.next_due(list(self._queues), tasks))
        if self._slots.free and not self._look_first:
            keeps_up = await self._claim_for_slots()
            if self._backlog and not self._to_prefetch():
                return 0 if self._slots.free else None
        if self._backlog and self._to_prefetch():
            return await self._prefetch()
        if self.limited.wanted:
            await self._claim_limited()
        # What comes next cannot be held, or is due and of a kind that ends soon: the slot that comes free asks for it.
        if not self._slots.free and (not self.hold.room or (self._backlog and self._dispatcher.speed.short)):
            return None
        return await self._look_ahead(keeps_up=keeps_up)

    async def _claim_for_slots(self) -> bool:
        """Fill free slots with due jobs; return whether there were some, and no more than there were slots."""
        wanted = self._slots.free
        claims = await self._claim_due(wanted)
        self._empty_claims = 0 if claims else self._empty_claims + 1
        cpu = self._slots.cpu_tasks
        self._holdable = any(c.on_crash == "retry" and not c.crashes and c.task not in cpu for c in claims)
        self._backlog = len(claims) == wanted
        if not claims or self._backlog:
            return False
        # They start before the next request, which takes as long as they do. Of a backlog the next part is to be on
        # its way while they run.
        await asyncio.sleep(0)
        return True

    async def _claim_due(self, limit: int, *, below_priority: int = 10) -> list[Claim]:
        claims: list[Claim] = []
        for group in self._requests.groups():
            most = min(limit - len(claims), self._requests.room(group))
            if most <= 0:
                continue
            # What one group brings is started before the next asks, so that it sees which slots are left.
            request = self._requests.request(group, most, below_priority=below_priority)
            found = await self._requests.claim(request)
            self._begin(found)
            claims += found
        return claims

    def _to_prefetch(self) -> int:
        """Return how many due jobs to claim before a slot is free: as many as start within a moment, once half of them have.

        It makes the drain of short jobs faster: without it, slots are empty while each claim is under way.
        """
        if not self._holdable or self.limited.waits_for_slots:
            return 0
        most, waiting = self._dispatcher.speed.ending_soon(), self.hold.waiting
        return most - waiting if waiting * 2 < most else 0

    async def _prefetch(self) -> float | None:
        """While these jobs run, take the next ones, which will soon find slots."""
        wanted = self._to_prefetch()
        plain = next(group for group in self._requests.groups() if not group.in_child)
        claims = await self._requests.claim(self._requests.request(plain, wanted, hold=True))
        self._backlog = len(claims) == wanted
        self.hold.add_due(claims)
        self._fill_slots()
        return None if self._backlog and not self._to_prefetch() else 0

    async def _look_ahead(self, *, keeps_up: bool = False) -> float | None:
        """Look what falls due next, claim it if it is near, and decide how long to sleep.

        `keeps_up`: all that was due has just been claimed, and slots are left.
        """
        self._look_first = True
        idle = None if self._watched and self._store.hears_others else self._poll_pause()
        queues = [queue for queue in self._queues if self._requests.queue_room_to_hold(queue, 1) > 0]
        groups = [group for group in self._requests.groups() if self._requests.room_to_hold(group) > 0]
        tasks = [name for group in groups for name in group.tasks]
        if not queues or not tasks:
            return idle
        found = await self._requests.next_due(queues, tasks)
        self.limited.look_ahead(found)
        # Where only the slots of all jobs are counted, it was asked for every job that could start here.
        self._content = self._slots.free > 0 and self._slots.only_total
        if found.due_at is None:
            return idle
        wait = found.due_at - found.now
        if wait <= 0:
            if keeps_up and self._ahead.catches_up(now=monotonic(), roomy=self.hold.roomy):
                await self._claim_ahead()
            self._look_first = self._content = False
            return self._pause_before_claim() if self._slots.free else None
        pause = self._ahead.pause(wait, now=monotonic(), roomy=self.hold.roomy)
        if not pause:
            if await self._claim_ahead():
                # Jobs that it could not hold, or that may not be claimed ahead, are found by the next look.
                return 0
            pause = wait
        self._look_first = pause < wait
        # All idle workers know of the same job.
        spread = self._fleet.wait(at_most=self._window / 2 / SECOND) if wait > self._window else 0
        seconds = pause / SECOND + spread
        return seconds if idle is None else min(idle, seconds)

    def _poll_pause(self) -> float:
        """Return after how many seconds to look for what no hint has told."""
        # Any worker finds what all of them would; but not all work on the same queues, hence the bounds.
        if self._store.hears_others:
            pause = self._fleet.share(POLL_WITH_HINTS, spacing=0.2, at_most=60.0)
        else:
            pause = self._fleet.share(POLL_WITHOUT_HINTS, spacing=0.01, at_most=2.0)
        return pause * random.uniform(0.8, 1.2)

    def _pause_before_claim(self) -> float:
        """Return after how many seconds to claim what is seen to be due."""
        # Usually it came due after the last claim. Claims that keep coming back empty are spaced out.
        empty = self._empty_claims
        return 0 if empty <= 1 else min(_LONGEST_EMPTY_PAUSE, _EMPTY_PAUSE * 2 ** min(empty, 10))

    def _may_hold(self) -> int:
        """How many claims to hold: one for each slot or, if that is more, this worker's share of what ends in a moment.

        The share wins a burst of thousands of jobs at one instant.
        """
        slots = self._slots.total
        return (
            slots
            if self._only_long
            else max(slots, self._dispatcher.speed.ending_soon() // self._fleet.workers)
        )

    async def _claim_ahead(self) -> bool:
        """Take what falls due within the window, and tell whether there was any that may be taken ahead."""
        taken = 0
        self._only_long = False
        # Not whether there is room afterwards: some may have started, and made room, since it was asked for.
        all_room = not self.hold.room
        for group in self._requests.groups():
            short = group._replace(tasks=self._dispatcher.speed.short_tasks(group.tasks))
            # More than there are slots only of tasks whose own runs are short: others would wait here for a slot.
            room = self.hold.room if short == group else self._slots.total - len(self.hold)
            found, filled = await self._hold_from(group, room)
            if short.tasks and short != group and (filled or len(self.hold) >= self._slots.total):
                more, beyond = await self._hold_from(short, self.hold.room)
                found += more
                self._only_long |= not beyond
            taken += found
            all_room |= filled
        self._ahead.taken(taken, all_room=all_room, now=monotonic())
        return taken > 0

    async def _hold_from(self, group: ClaimGroup, room: int) -> tuple[int, bool]:
        """Hold jobs of a group, and tell how many were found and whether that is all there was room for."""
        room = min(room, self.hold.room, self._requests.room_to_hold(group))
        if room <= 0:
            return 0, False
        claims = await self._requests.claim(
            self._requests.request(group, room, hold=True, ahead=self._window)
        )
        for claim in claims:
            self.hold.add(claim)
        return len(claims), len(claims) == room

    async def _claim_limited(self) -> int:
        """Start what limits let through, and tell how many; such jobs are never taken in advance."""
        started = 0
        with self.limited.turn(at_latest=self._poll_pause()):
            for group in self._requests.groups():
                asked = self._requests.room(group)
                request = self._requests.request(group, asked)
                if asked <= 0 or not request.queues:
                    self.limited.had_no_room()
                    continue
                # Noted before the answer: a slot that is freed in the meantime was not asked for.
                self.limited.are_full(self._slots.full(self._queues))
                found = await self._requests.claim_limited(request)
                self._begin(found.claims)
                started += len(found.claims)
                self.limited.answered(found, asked=asked, now=self._time.now())
                self.limited.are_full(self._slots.full(self._queues))
        return started

    async def _recover_unanswered(self) -> None:
        """Find out what a claim had handed out before its answer was lost."""
        while self._requests.unanswered:
            found = await self._requests.look_up(self._requests.unanswered[0])
            unknown = self._dispatcher.unknown(claim.token for claim in found)
            for claim in found:
                if claim.token not in unknown or self.holds(claim.token):
                    continue
                if claim.due_at > claim.claimed_at:
                    self.hold.add(claim)
                else:
                    self._begin([claim], unmarked=True)

    def slot_freed(self) -> None:
        """Use slots that jobs have left."""
        self.limited.room_made(self._slots.room)
        if self._dispatcher.speed.short:
            self._fill_slots()
            if not self._slots.free and not self._to_prefetch():
                return
        self._freed = True
        if not self._in_round:
            self._offer_freed()

    def _offer_freed(self) -> None:
        # What the last look has found is awaited, and one more slot changes nothing.
        content = self._content and not self.hold.waiting and not self.limited.wanted
        if self._freed and not content:
            self.wakeup.set()
        self._freed = False

    async def _start_waiting(self) -> None:
        """Give free slots to held claims whose time has come, after more urgent jobs that are due."""
        claim = self.hold.first_waiting()
        if claim is None:
            return
        if claim.priority > 0 and not self._dispatcher.speed.short:
            await self._claim_due(self._slots.free, below_priority=claim.priority)
        self._fill_slots()

    def _fill_slots(self) -> None:
        if self._slots.free and self.hold.waiting and not (self.stopping or self._paused):
            held = len(self.hold)
            self.hold.hand_out(self._slots.free, self._start_unmarked)
            if len(self.hold) < held:
                self._fill_room()

    def _fill_room(self) -> None:
        """Claim more ahead, if there was more, once enough of what was held has started that it is worth asking."""
        if self._ahead.left_some and self.hold.roomy:
            self._ahead.room_made()
            self._look_first = True
            self.wakeup.set()

    def _begin(self, claims: Sequence[Claim], *, unmarked: bool = False) -> None:
        # While the store was asked, a held claim may have taken the slot, or the worker may have been stopped.
        if not (self.stopping or self._paused):
            claims = self._dispatcher.start_all(claims, unmarked=unmarked)
        for claim in claims:
            self._release(claim)

    def _start_held(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        if self.stopping or self._paused:
            return claims
        refused = self._start_unmarked(claims)
        if len(refused) < len(claims):
            self._fill_room()
        return refused

    def _start_unmarked(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        return self._dispatcher.start_all(claims, unmarked=True)

    def _let_others(self, claim: Claim) -> None:
        """Release a claim that found no slot here; claim no more ahead until the speed of runs is known again."""
        self._dispatcher.speed.distrust(claim.task)
        self._backlog = self._holdable = False
        self._release(claim)

    def _release(self, claim: Claim) -> None:
        self._dispatcher.settle(claim, Released())


class PrefetchTiming:
    """Says when to claim ahead: before a job is due, and no sooner than what comes after it can be taken along.

    It keeps lateness low at a steady rate: jobs that follow each other share a claim, and each starts on time.
    """

    def __init__(self, window: Micros) -> None:
        self._half = window // 2
        # Not the whole window: due times are often round, and what is held starts at the very moment before.
        self._reach = window * 15 // 16
        self._next: Micros = 0
        self._found_some = False
        self.left_some = False
        """Whether there was more within the window than could be held."""

    def pause(self, wait: Micros, *, now: Micros, roomy: bool) -> Micros:
        """Return how long to wait before the next claim ahead, 0 for not at all, if the next job is due after `wait`."""
        if self.left_some and wait <= self._reach:
            # Once enough of what is held has started there is room again; what is due sooner is claimed when it is.
            return 0 if roomy else wait
        early = max(0, self._next - now)
        return 0 if wait <= early else max(early, wait - self._reach)

    def catches_up(self, *, now: Micros, roomy: bool) -> bool:
        """Whether to claim ahead although jobs are due, which follow one another faster than they can be asked for."""
        return roomy and (self._found_some or self._next <= now)

    def taken(self, count: int, *, all_room: bool, now: Micros) -> None:
        """Take in what a claim ahead has brought, and whether it has filled the room that there was for it."""
        self._next = now + self._half
        self._found_some = count > 0
        self.left_some = all_room

    def room_made(self) -> None:
        """Let the next claim come at once: enough of what was held has started."""
        self.left_some = False
        self._next = 0
