"""Decides when and how many jobs to claim."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from duetime.model.job import Claim, JobId, Token
from duetime.model.outcome import Released
from duetime.model.time import SECOND, Instant, Micros
from duetime.runtime.claiming.claim_requests import ClaimRequests, DemandBuilder
from duetime.runtime.claiming.held_claims import HeldClaims
from duetime.runtime.claiming.hints import PollingPolicy
from duetime.runtime.claiming.limits import LimitedClaimPolicy
from duetime.runtime.claiming.prefetch import Prefetcher, PrefetchPolicy, PrefetchTiming
from duetime.runtime.fleet_pacing import FleetPacing
from duetime.runtime.identity import WorkerIdentity
from duetime.runtime.running.dispatcher import Dispatcher
from duetime.runtime.running.handler import Handler
from duetime.runtime.running.slots import Slots
from duetime.runtime.service import HealthObserver, Service
from duetime.runtime.store_clock import StoreClock, monotonic
from duetime.stores.base.protocols import Store
from duetime.stores.base.values import Hint

_PROMPT_ANSWER = 0.01
"""Who answers a hint within so many seconds is among the first, and will find the jobs that it is about."""


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
        health: HealthObserver,
        crowd: FleetPacing,
        window: Micros,
        ahead_budget: int,
        watched: bool = False,
    ) -> None:
        """`watched`: heartbeats look for jobs that hints have missed, and tell by `expect`."""
        super().__init__(health)
        self._store = store
        self._queues = queues
        self._slots = slots
        self._dispatcher = dispatcher
        dispatcher.on_free = self.slot_freed
        self._time = time
        self._crowd = crowd
        self._window = window
        self._watched = watched
        self._asking = ClaimRequests(store, identity, time)
        self._look_first = False
        self._patience = PollingPolicy(store, crowd)
        self._ahead = PrefetchTiming(window)
        self._asks = self._content = self._freed = self._paused = False
        self.limited = LimitedClaimPolicy(handlers)
        self.hold = self._empty_hold(ahead_budget)
        self._appetite = PrefetchPolicy(
            dispatcher=dispatcher, slots=slots, hold=self.hold, limited=self.limited
        )
        limits, hold = self.limited.limits, self.hold
        self._demands = DemandBuilder(
            identity=identity, handlers=handlers, queues=queues, slots=slots, hold=hold, limits=limits
        )
        self._stock = self._provide(ahead_budget)

    def _empty_hold(self, slots_worth: int) -> HeldClaims:
        return HeldClaims(
            budget=self._may_hold,
            patient=slots_worth,
            window=self._window,
            time=self._time,
            on_due=self._start_held,
            on_late=self._let_others,
        )

    def _provide(self, slots_worth: int) -> Prefetcher:
        return Prefetcher(
            asking=self._asking,
            demands=self._demands,
            hold=self.hold,
            appetite=self._appetite,
            turns=self._ahead,
            crowd=self._crowd,
            slots_worth=slots_worth,
            window=self._window,
        )

    def hear(self, hint: Hint) -> None:
        """Look again because something may have changed."""
        wait = self._crowd.wait()
        # A vague hint is answered by a read first, so that idle processes do not queue for the write lock; and so is any
        # hint by those who let others go first, since a claim that finds nothing costs more than a look.
        if hint.kind == "jobs":
            self._look_first = self._look_first and wait > _PROMPT_ANSWER
            self._patience.renew()
        if hint.kind == "limits":
            self.limited.learn(in_use=True)
        self.limited.stir()
        self.wakeup.set_after(wait)

    def expect(self, wait: Micros) -> None:
        """Look shortly before a job falls due that a heartbeat has seen, or once a slot is free, in case nobody told."""
        if self._slots.free:
            early = max(0, wait - self._window) / SECOND
            self.wakeup.set_after(early + self._crowd.wait(at_most=self._window / 2 / SECOND))
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
        ours = self._asking.recall(strays)
        if ours:
            self.wakeup.set()
        return strays - ours

    def forget_all(self) -> None:
        """Drop every claim, held or on its way: the lease they were taken under is lost."""
        self.hold.take_all()
        self._asking.forget()

    def holds(self, token: Token) -> bool:
        """Whether a claim is held unstarted, or may still be on its way here."""
        claim = self.hold.get(token.job_id)
        return (claim is not None and claim.token == token) or self._asking.awaits(token)

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
            # Nobody looks for more of a queue while as many are held of it as it has slots.
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
        self._asks, self._content, self._freed = True, False, False
        try:
            pause = await self._ask()
        finally:
            self._asks = False
        # A held claim may have taken the last slot since the look, and limited jobs wait for the next to come free.
        self._content = self._content and self._slots.free > 0
        self._offer_freed()
        return pause if self._paused or not self._slots.free else self.limited.sooner(pause)

    async def _ask(self) -> float | None:
        await self._recover_unanswered()
        if self._paused:
            self.give_back_all()
            return None
        await self._start_waiting()
        if self.limited.goes_first() and not await self._claim_limited() and self._appetite.backlog:
            # With so much to do nobody looks ahead; limited jobs that fall due meanwhile must be known of all the same.
            await self._look_ahead_for_limited()
        return await self._claim_in_turn()

    async def _claim_in_turn(self) -> float | None:
        keeps_up = False
        if self._slots.free and not self._look_first:
            wanted = self._slots.free
            claimed = await self._claim_due(wanted)
            self._patience.learn(found=bool(claimed))
            self._appetite.served(claimed, asked=wanted)
            if self._appetite.backlog and not self._appetite.most():
                return 0 if self._slots.free else None
            keeps_up = bool(claimed) and not self._appetite.backlog
            if keeps_up:
                # They start before the next question is put, which takes as long as they do; of a backlog the next
                # part is to be on its way while they run.
                await asyncio.sleep(0)
        if self._appetite.backlog and self._appetite.most():
            return await self._fetch_next_batch()
        if self.limited.wanted:
            await self._claim_limited()
        # What comes next cannot be held, or is due and of a kind that ends soon: the slot that comes free asks for it.
        if not self._slots.free and (not self.hold.room or (self._appetite.backlog and self._appetite.brisk)):
            return None
        return await self._look_ahead(keeps_up=keeps_up)

    async def _fetch_next_batch(self) -> float | None:
        """While these jobs run, take the next ones, if they will soon find slots; otherwise others may have them."""
        wanted = self._appetite.most()
        plain = next(lane for lane in self._demands.lanes() if not lane.in_child)
        claims = await self._asking.claim(self._demands.in_advance(plain, wanted))
        self._appetite.backlog = len(claims) == wanted
        self.hold.add_due(claims)
        self._fill_slots()
        return None if self._appetite.backlog and not self._appetite.most() else 0

    def slot_freed(self) -> None:
        """Use slots that jobs have left."""
        self.limited.room_made(self._slots.room)
        if self._appetite.brisk:
            self._fill_slots()
            if not self._slots.free and not self._appetite.most():
                return
        self._freed = True
        if not self._asks:
            self._offer_freed()

    def _offer_freed(self) -> None:
        # What the last look has found is looked after, and a slot more changes nothing; others hint or are awaited.
        content = self._content and not self.hold.waiting and not self.limited.wanted
        if self._freed and not content:
            self.wakeup.set()
        self._freed = False

    def _fill_slots(self) -> None:
        if self._slots.free and self.hold.waiting and not self._idle:
            held = len(self.hold)
            self.hold.hand_out(self._slots.free, self._start_unmarked)
            if len(self.hold) < held:
                self._make_room()

    @property
    def _idle(self) -> bool:
        """Whether nothing more may start."""
        return self.stopping or self._paused

    async def _look_ahead(self, *, keeps_up: bool = False) -> float | None:
        """Tell when to come back; `keeps_up`: all that was due has just been claimed, and slots are left."""
        self._look_first = True
        queues = [queue for queue in self._queues if self._demands.may_hold(queue, 1) > 0]
        tasks = [
            name for lane in self._demands.lanes() if self._demands.share(lane) > 0 for name in lane.tasks
        ]
        idle = None if self._watched and self._store.hears_others else self._patience.until_next_look()
        if not queues or not tasks:
            return idle
        found = await self._asking.next_due(queues, tasks)
        self.limited.look_ahead(found)
        # Where only the slots of all jobs are counted, it was asked for every job that could start here.
        self._content = self._slots.free > 0 and self._slots.only_total
        if found.due_at is None:
            return idle
        wait = found.due_at - found.now
        if wait <= 0:
            if keeps_up and self._ahead.catches_up(now=monotonic(), roomy=self.hold.roomy):
                await self._stock.fill()
            self._look_first = self._content = False
            return self._patience.until_next_claim() if self._slots.free else None
        pause = await self._approach(wait)
        return pause if idle is None else min(idle, pause)

    async def _approach(self, wait: Micros) -> float:
        """Claim what falls due in a while, unless it is too early for that, and tell when to come back."""
        pause = self._ahead.pause(wait, now=monotonic(), roomy=self.hold.roomy)
        if not pause:
            if await self._stock.fill():
                # What it has left, for want of room or because it must not run twice, another look tells.
                return 0
            pause = wait
        self._look_first = pause < wait
        # All who are idle know of the same job.
        crowd = self._crowd.wait(at_most=self._window / 2 / SECOND) if wait > self._window else 0
        return pause / SECOND + crowd

    async def _claim_due(self, limit: int, *, below_priority: int = 10) -> list[Claim]:
        claims: list[Claim] = []
        for lane in self._demands.lanes():
            most = min(limit - len(claims), self._demands.room(lane))
            if most <= 0:
                continue
            # What one lane brings is started before the next asks, so that it sees which slots are left.
            demand = self._demands.now(lane, most, below_priority=below_priority)
            found = await self._asking.claim(demand)
            self._begin(found)
            claims += found
        return claims

    async def _look_ahead_for_limited(self) -> None:
        tasks = [name for lane in self._demands.lanes() for name in lane.tasks]
        self.limited.look_ahead(await self._asking.next_due(list(self._queues), tasks))

    async def _claim_limited(self) -> int:
        """Start what limits let through, and tell how many; such jobs are never taken in advance."""
        started = 0
        with self.limited.turn(at_latest=self._patience.until_next_look()):
            for lane in self._demands.lanes():
                asked = self._demands.room(lane)
                demand = self._demands.now(lane, asked)
                if asked <= 0 or not demand.queues:
                    self.limited.had_no_room()
                    continue
                # Before the answer, too: a slot that is freed meanwhile was not asked for.
                self.limited.are_full(self._slots.full(self._queues))
                found = await self._asking.claim_limited(demand)
                self._begin(found.claims)
                started += len(found.claims)
                self.limited.answered(found, asked=asked, now=self._time.now())
                self.limited.are_full(self._slots.full(self._queues))
        return started

    def _begin(self, claims: Sequence[Claim], *, unmarked: bool = False) -> None:
        # While the store was asked, a held claim may have taken the slot, or the worker may have been stopped.
        for claim in claims if self._idle else self._dispatcher.start_all(claims, unmarked=unmarked):
            self._release(claim)

    async def _recover_unanswered(self) -> None:
        """Find out what a claim had handed out before its answer was lost."""
        while self._asking.unanswered:
            found = await self._asking.look_up(self._asking.unanswered[0])
            unknown = self._dispatcher.unknown(claim.token for claim in found)
            for claim in found:
                if claim.token not in unknown or self.holds(claim.token):
                    continue
                if claim.due_at > claim.claimed_at:
                    self.hold.add(claim)
                else:
                    self._begin([claim], unmarked=True)

    async def _start_waiting(self) -> None:
        """Give free slots to held claims whose time has come, after whatever more urgent is due."""
        claim = self.hold.first_waiting()
        if claim is None or not self._slots.free:
            return
        if claim.priority > 0 and not self._appetite.brisk:
            await self._claim_due(self._slots.free, below_priority=claim.priority)
        self._fill_slots()

    def _may_hold(self) -> int:
        return self._stock.budget()

    def _start_held(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        if self._idle:
            return claims
        refused = self._start_unmarked(claims)
        if len(refused) < len(claims):
            self._make_room()
        return refused

    def _make_room(self) -> None:
        """Have more claimed ahead, if there was more, once so much of what was held has started that it is worth it."""
        if self._ahead.left_some and self.hold.roomy:
            self._ahead.room_made()
            self._look_first = True
            self.wakeup.set()

    def _start_unmarked(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        return self._dispatcher.start_all(claims, unmarked=True)

    def _let_others(self, claim: Claim) -> None:
        """Give back a claim that has found no slot here, and take no more in advance until a slot is free again."""
        self._appetite.spoil(claim.task)
        self._release(claim)

    def _release(self, claim: Claim) -> None:
        self._dispatcher.settle(claim, Released())
