"""Hands out jobs, and reads claims from what the server answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from duetime.model.job import Claim, JobId, Token
from duetime.model.stored import checked_claim, unreadable_row
from duetime.model.text import shown
from duetime.model.time import Instant
from duetime.model.worker import WorkerId
from duetime.stores.base import ClaimRequest, NextDue
from duetime.stores.redis.connection import RedisStorePart
from duetime.stores.redis.rows import ANSWER_DECODER, EXTRAS, demand_fields, token_fields

ClaimWords: TypeAlias = tuple[JobId, int, Instant, str, str, str]
"""What the server tells of one: the job, the fence, the due time, the line, the arguments and the extras."""
_WORDS_PER_CLAIM: Final = 6

_FIRST_EXTRA: Final = Claim._fields.index("failures")
_TEXT_EXTRAS: Final = frozenset({"on_crash", "schedule", "unique_key", "tags", "parent", "callbacks", "gate"})
_EXTRA_DEFAULTS: Final[dict[str, Any]] = {"failures": 0, "crashes": 0, "blames": 0, "on_crash": "retry"}


class RescuedClaim(NamedTuple):
    """A claim on what a dead worker had, with who that was and since when it ran."""

    claim: Claim
    worker: str
    started_at: Instant | None


class _ClaimsDecoder:
    """Reads claims; a row that somebody has edited by hand is handed out as it is, to fail alone."""

    _decoder: Final = msgspec.msgpack.Decoder(tuple[dict[str, Any], list[Any]])

    def decode(self, packed: bytes, /) -> list[Claim]:
        """Return claims."""
        facts, _ = self._decoder.decode(packed)
        words = iter(facts.get("claims", ()))
        return _read_claims(
            zip(*[words] * _WORDS_PER_CLAIM, strict=True), facts.get("claim_id", ""), facts["now"]
        )


class _RescuedClaimsDecoder:
    """Reads claims on what dead workers had."""

    _decoder: Final = msgspec.msgpack.Decoder(tuple[dict[str, Any], list[tuple[Any, str, Any]]])

    def decode(self, packed: bytes, /) -> tuple[dict[str, Any], list[RescuedClaim]]:
        """Return facts, and claims with what they were before."""
        facts, found = self._decoder.decode(packed)
        claims = _read_claims((told for told, _, _ in found), facts["claim_id"], facts["now"])
        pairs = zip(claims, found, strict=True)
        return facts, [RescuedClaim(claim, worker, started_at) for claim, (_, worker, started_at) in pairs]


CLAIMS_DECODER: Final = _ClaimsDecoder()
RESCUED_CLAIMS_DECODER: Final = _RescuedClaimsDecoder()


def _read_claims(found: Iterable[ClaimWords], claim_id: str, now: Instant) -> list[Claim]:
    claims: list[Claim] = []
    for job_id, fence, due_at, line, payload, extras in found:
        queue, priority, task = _split_line(line)
        claims.append(
            Claim(
                job_id, fence, claim_id, task, payload, queue, priority, due_at, now, *_extra_columns(extras)
            )
        )
    return claims


@lru_cache(maxsize=1024)
def _split_line(line: str) -> tuple[str, int, str]:
    """Return the queue, the priority and the task that a line stands for."""
    queue, priority, task = line.split("|", 2)
    return queue, int(priority), task


@lru_cache(maxsize=1024)
def _extra_columns(extras: str) -> tuple[Any, ...]:
    """Return the columns that share a field, which jobs of one kind have in common."""
    given, problem = _decode_extras(extras)
    values = [_extra_value(name, (_EXTRA_DEFAULTS | given).get(name)) for name in EXTRAS]
    claim = checked_claim(Claim("", 0, "", "", "", "", 0, 0, 0, *values))
    return (claim if problem is None else claim._replace(problem=problem))[_FIRST_EXTRA:]


def _decode_extras(extras: str) -> tuple[dict[str, Any], str | None]:
    try:
        given = msgspec.json.decode(extras, type=dict[str, Any]) if extras else {}
    except (msgspec.MsgspecError, RecursionError) as error:
        # The server is less strict.
        return {}, unreadable_row(f"extras is {shown(extras)}: {error}")
    return given, None


def _extra_value(name: str, told: Any) -> Any:
    if name in _TEXT_EXTRAS or not isinstance(told, str):
        return told
    try:
        return int(told)
    except ValueError:
        return told


class RedisClaims(RedisStorePart):
    """A part of `RedisStore`."""

    async def claim(self, demand: ClaimRequest) -> list[Claim]:
        """Atomically hand out jobs."""
        if demand.limit <= 0 or not demand.queues or not demand.tasks:
            return []
        return await self._calls.write("claim", CLAIMS_DECODER, demand_fields(demand), rows=demand.limit)

    async def claims_under(self, worker: WorkerId, claim_id: str) -> list[Claim]:
        """Return what a claim of a worker whose answer was lost had handed out and is still held."""
        asked = {"worker": worker, "claim_id": claim_id}
        return await self._calls.read("claims_under", CLAIMS_DECODER, asked)

    async def mark_started(self, tokens: Sequence[Token], started_at: Instant) -> None:
        """Record that claims taken ahead have been started, fenced."""
        if tokens:
            request = {"tokens": [token_fields(token) for token in tokens], "started_at": started_at}
            await self._calls.write("mark_started", ANSWER_DECODER, request, rows=len(tokens))

    async def next_due(self, queues: Sequence[str], tasks: Sequence[str]) -> NextDue:
        """Tell when the next pending job of these queues falls due."""
        facts, _ = await self._calls.read("next_due", ANSWER_DECODER, {"queues": queues, "tasks": tasks})
        return NextDue(facts["now"], facts.get("due_at"), facts.get("limited_at"), facts["limited"])
