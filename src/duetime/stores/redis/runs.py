"""Hands out jobs, also under limits, and writes how their runs end and what they report meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import msgspec

from duetime.errors import StoreUnavailable
from duetime.failpoints import failpoint
from duetime.model.callbacks import call_back
from duetime.model.explain.facts import LimitFacts
from duetime.model.job import Claim, JobId, Token
from duetime.model.limits import LimitedJob, MeasuredLimit, choose_limited, gate_rule, next_opening
from duetime.model.outcome import MAX_SNOOZED, SNOOZED, Settlement, as_stored, is_plain_success
from duetime.model.reports import LogPart, NewLogPart, Progress
from duetime.model.states import State
from duetime.model.stored.jobs import StoredAttempt, StoredJob, checked_claim, unreadable_row
from duetime.model.text import shown
from duetime.model.time import Instant
from duetime.model.worker import WorkerId
from duetime.stores.base import ClaimRequest, NextDue, OrphanedJob, QueueOutlook
from duetime.stores.base.jobs import settled_hints
from duetime.stores.base.limits import LimitedClaiming, LimitSurvey
from duetime.stores.redis import messages
from duetime.stores.redis.connection import RedisStorePart

_FIRST_EXTRA: Final = Claim._fields.index("failures")
_TEXT_EXTRAS: Final = frozenset(
    {"on_crash", "schedule", "unique_key", "tags", "parent", "callbacks", "headers", "gate"}
)
_EXTRA_DEFAULTS: Final[dict[str, Any]] = {"failures": 0, "crashes": 0, "blames": 0, "on_crash": "retry"}
_JOB_FIELDS = frozenset(StoredJob.__dataclass_fields__)
_TRIES: Final = 20
"""How often callbacks are made anew because a cancellation of the job was requested meanwhile."""
_STEPS_PER_LOOK: Final = 1_000
"""How many places and jobs at them one look at limits sees; the next look goes on from there."""
_LATEST_JOBS_PER_LOOK: Final = 100
"""How many of the jobs that fell due last one look sees; if there are fewer, it does not walk."""
_PRUNED_GATES_PER_CALL: Final = 1_000


def read_claims(answer: messages.ServerAnswer) -> list[Claim]:
    """Read claims; a row that was edited by hand is handed out as it is, to fail alone."""
    claim_id, now = answer.facts.get("claim_id", ""), answer.facts["now"]
    claims: list[Claim] = []
    for job_id, fence, due_at, line, payload, extras in answer.rows:
        queue, priority, task = _split_line(line)
        own = job_id, fence, claim_id, task, payload, queue, priority, due_at, now
        claims.append(Claim(*own, *_extra_columns(extras)))
    return claims


def read_rescued_jobs(answer: messages.ServerAnswer) -> list[OrphanedJob]:
    """Read claims on what dead workers had, with who that was and since when it ran."""
    claims = read_claims(messages.ServerAnswer(answer.facts, [row[:-2] for row in answer.rows]))
    return [
        OrphanedJob(claim, row[-2], row[-1], blamed=False, suspected=claim.due_at <= claim.claimed_at)
        for claim, row in zip(claims, answer.rows, strict=True)
    ]


@lru_cache(maxsize=1024)
def _split_line(line: str) -> tuple[str, int, str]:
    """Return the queue, the priority and the task that a line stands for."""
    queue, priority, task = line.split("|", 2)
    return queue, int(priority), task


@lru_cache(maxsize=1024)
def _extra_columns(extras: str) -> tuple[Any, ...]:
    """Return the columns that share a field, which jobs of one kind have in common."""
    given, problem = dict(_EXTRA_DEFAULTS), None
    try:
        given |= msgspec.json.decode(extras or "{}", type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as error:
        # The server is less strict.
        problem = unreadable_row(f"extras is {shown(extras)}: {error}")
    values = [_extra_value(name, given.get(name)) for name in messages.EXTRAS]
    claim = checked_claim(Claim("", 0, "", "", "", "", 0, 0, 0, *values))
    return (claim if problem is None else claim._replace(problem=problem))[_FIRST_EXTRA:]


def _extra_value(name: str, told: Any) -> Any:
    if name in _TEXT_EXTRAS or not isinstance(told, str):
        return told
    try:
        return int(told)
    except ValueError:
        return told


def settlement_request(told: Settlement, standing: messages.JobWithClaim | None) -> dict[str, Any]:
    """Name what a settlement says, without what it leaves open, and with what is called back because of it."""
    row = messages.settlement_fields(as_stored(told) if told.fleeting else told)
    new_jobs = list(told.new_jobs)
    if standing is not None:
        row["requested"] = standing.job.cancel_requested_at is not None
        # What is told of an end counts also if it is not stored.
        called = call_back(_job_as_ended(told, standing))
        new_jobs += [] if called is None else [called]
    if new_jobs:
        row["new_jobs"] = [messages.job_fields(job) for job in new_jobs]
    if told.attempt == SNOOZED and told.token.fence > MAX_SNOOZED:
        row["trim"] = told.token.fence - MAX_SNOOZED
    return row


def _job_as_ended(told: Settlement, standing: messages.JobWithClaim) -> StoredJob:
    """Return a job as it will be once a settlement is written."""
    asked = standing.job.cancel_requested_at is not None
    stopped = asked and told.state in {State.PENDING, State.CANCELLED}
    return replace(
        standing.job,
        state=State.CANCELLED if stopped else told.state,
        reason=standing.cancel_reason if stopped else told.reason,
        finished_at=told.finished_at or standing.now,
        failures=told.failures,
        crashes=told.crashes,
        blames=told.blames,
        result=told.result,
        result_error=told.result_error,
        error=told.error,
        traceback=told.traceback,
    )


def callbacks_of_cancelled(standing: messages.JobWithClaim, *, reason: str) -> list[dict[str, object]]:
    """Return what a job that waits calls back when it is cancelled."""
    new = call_back(replace(standing.job, state=State.CANCELLED, reason=reason, finished_at=standing.now))
    return [] if new is None else [messages.job_fields(new)]


def claim_that_takes_over(standing: messages.JobWithClaim, *, claim_id: str) -> Claim:
    """Return the claim that takes a job away from its worker."""
    job = standing.job
    same: dict[str, Any] = {name: getattr(job, name) for name in Claim._fields if name in _JOB_FIELDS}
    same["fence"] = job.fence + 1
    return Claim(job_id=job.id, claim_id=claim_id, claimed_at=standing.now, **same)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisLimitSurvey(LimitSurvey):
    """What may start, as a look has it."""

    gates: Mapping[str, messages.NamedValues]
    """What was seen of gates and of limited queues, on which it was decided what may start."""
    queues: Mapping[str, messages.NamedValues]
    chosen: Sequence[LimitedJob]
    parts: Mapping[JobId, str]
    """The part of an index that lists a job."""


def read_survey(facts: messages.NamedValues, demand: ClaimRequest) -> RedisLimitSurvey:
    """Read what a look has found, and choose what may start."""
    now: Instant = facts["now"]
    gates, queues = dict[str, MeasuredLimit](), dict[str, MeasuredLimit]()
    seen_gates, seen_queues = dict[str, messages.NamedValues](), dict[str, messages.NamedValues]()
    waiting: list[LimitedJob] = []
    for found in facts["limits"]:
        queue, gate = found["queue"], found.get("gate")
        limits, seen = (queues, seen_queues) if gate is None else (gates, seen_gates)
        name = queue if gate is None else gate
        if name not in limits:
            rule = (
                messages.read_gate(found) if gate is None else gate_rule(gate, found["task"], demand.limits)
            )
            limits[name] = MeasuredLimit(rule, _read_starts(found.get("starts")))
            limits[name].measure(running=found["running"], passed=found.get("passed"), now=now)
            seen[name] = {key: found.get(key) for key in ("task", "running", "starts")}
            seen[name] |= {"name": name, **messages.gate_fields(rule)}
        due = ((job["priority"], job["due_at"], job["id"]) for job in found["jobs"])
        waiting += [LimitedJob(*one, queue, gate) for one in due]
    chosen = choose_limited(waiting, gates=gates, queues=queues, wanted=demand.wanted, most=demand.limit)
    return RedisLimitSurvey(
        hopeful=bool(chosen),
        again_at=next_opening((*queues.values(), *gates.values())),
        place=facts["cut"],
        seen_at=now,
        gates=seen_gates,
        queues=seen_queues,
        chosen=chosen,
        parts={job["id"]: job["part"] for found in facts["limits"] for job in found["jobs"]},
    )


def _read_starts(text: str | None) -> list[Instant]:
    return [int(start) for start in text.split(",")] if text else []


class RedisRuns(RedisStorePart, LimitedClaiming[RedisLimitSurvey]):
    """A part of `RedisStore`."""

    async def claim(self, demand: ClaimRequest) -> list[Claim]:
        """Atomically hand out jobs."""
        if demand.pointless:
            return []
        return read_claims(
            await self._calls.write("claim", messages.demand_fields(demand), rows=demand.limit)
        )

    async def _survey(self, demand: ClaimRequest, place: str | None) -> RedisLimitSurvey:
        request = {"queues": list(demand.wanted), "tasks": demand.tasks, "limit": demand.limit}
        request |= {"after": place or "", "steps": _STEPS_PER_LOOK, "latest": _LATEST_JOBS_PER_LOOK}
        return read_survey((await self._calls.read("survey", request)).facts, demand)

    async def _seize(self, demand: ClaimRequest, found: RedisLimitSurvey) -> list[Claim]:
        """Hand out what was chosen, as far as nothing else has started under the same limits meanwhile."""
        gates = {job.gate for job in found.chosen if job.gate is not None}
        queues = {job.queue for job in found.chosen if job.queue in found.queues}
        request = {
            "worker": demand.worker,
            "claim_id": demand.claim_id,
            "gates": [found.gates[name] for name in gates],
            "queues": [found.queues[name] for name in queues],
            "jobs": [
                job._asdict() | {"part": found.parts[job.id], "limited": job.queue in queues}
                for job in found.chosen
            ],
        }
        claims = read_claims(await self._calls.write("seize", request, rows=len(found.chosen)))
        return [claim._replace(queue_limited=claim.queue in queues) for claim in claims]

    async def _prune_gates(self, after: str) -> tuple[int, str]:
        request = {"after": after, "stretch": _PRUNED_GATES_PER_CALL}
        facts, _ = await self._calls.write("prune_gates", request)
        return facts["gone"], facts["last"]

    async def outlook(self, queue: str, *, gate: str | None = None) -> QueueOutlook:
        """Return what else than workers decides whether jobs in a queue, under a gate, are handed out."""
        answer = await self._calls.read("outlook", {"queue": queue, "gate": gate})
        facts, now = answer.facts, answer.now
        limits: list[LimitFacts] = []
        for found in facts["limits"]:
            kind, name, starts = found["kind"], found["name"], _read_starts(found.get("starts"))
            rule, running = messages.read_gate(found), found["running"]
            limits.append(LimitFacts.of(kind, name, rule, running=running, starts=starts, now=now))
        return QueueOutlook(now, facts.get("paused_at"), facts.get("paused_reason"), tuple(limits))

    async def claims_under(self, worker: WorkerId, claim_id: str) -> list[Claim]:
        """Return what a claim of a worker whose answer was lost had handed out and is still held."""
        return read_claims(await self._calls.read("claims_under", {"worker": worker, "claim_id": claim_id}))

    async def mark_started(self, tokens: Sequence[Token], started_at: Instant) -> None:
        """Record that claims taken ahead have been started, fenced."""
        if tokens:
            request = {"tokens": [messages.token_fields(token) for token in tokens], "started_at": started_at}
            await self._calls.write("mark_started", request, rows=len(tokens))

    async def next_due(self, queues: Sequence[str], tasks: Sequence[str]) -> NextDue:
        """Tell when the next pending job of these queues falls due."""
        facts, _ = await self._calls.read("next_due", {"queues": queues, "tasks": tasks})
        return NextDue(facts["now"], facts.get("due_at"), facts.get("limited_at"), facts["limited"])

    async def settle(self, settlements: Sequence[Settlement]) -> frozenset[Token]:
        """Write each change whose fence still holds and return their tokens."""
        successes: list[Settlement] = []
        waiting: list[Settlement] = []
        for change in settlements:
            plain = is_plain_success(change) and change.result_error is None
            (successes if plain else waiting).append(change)
        accepted: set[Token] = set()
        for _ in range(_TRIES):
            if not waiting and not successes:
                return frozenset(accepted)
            ends = await self._standing([change.token.job_id for change in waiting if change.calls_back])
            if ends:
                failpoint("within:settle")
            changes = [settlement_request(change, ends.get(change.token.job_id)) for change in waiting]
            request = {"changes": changes, "successes": messages.success_words(successes)}
            hints, several = settled_hints(waiting), len(waiting) + len(successes)
            facts, _ = await self._calls.write("settle", request, hints=hints, rows=several)
            accepted.update(change.token for change in _at_places(facts["accepted"], waiting))
            accepted.update(change.token for change in successes)
            accepted.difference_update(change.token for change in _at_places(facts["refused"], successes))
            waiting, successes = _at_places(facts["moved"], waiting), []
        raise StoreUnavailable("the cancellation of a job was asked for again and again while it ended")

    async def report(self, progress: Sequence[Progress], logs: Sequence[NewLogPart]) -> None:
        """Write what runs say while they run, fenced."""
        if progress or logs:
            told = list(map(messages.progress_fields, progress))
            request = {"progress": told, "logs": messages.log_part_fields(logs)}
            await self._calls.write("report", request, rows=len(progress) + len(logs))

    async def attempts(self, job_id: str) -> list[StoredAttempt]:
        """Return the tries that ended without ending the job, oldest first."""
        _, found = await self._calls.read("attempts", {"id": job_id})
        attempts = (messages.read_record(StoredAttempt, row) for row in found)
        return sorted(attempts, key=lambda attempt: attempt.fence)

    async def logs(self, job_id: str, *, after: tuple[int, int] = (0, 0)) -> list[LogPart]:
        """Return what the runs of a job have logged, in order."""
        _, found = await self._calls.read("logs", {"id": job_id})
        return [
            LogPart(job_id=job_id, fence=fence, attempt=attempt, line=line, text=text)
            for fence, line, (attempt, text) in sorted(found)
            if (fence, line) > after
        ]


def _at_places(places: Sequence[int], settlements: Sequence[Settlement]) -> list[Settlement]:
    """Return the ones that the server names by their places, which it counts from one."""
    return [settlements[place - 1] for place in places]
