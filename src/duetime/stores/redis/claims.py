"""Claims, from what the server tells of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from duetime.model.instants import Instant
from duetime.model.job import Claim, JobId
from duetime.model.oddities import checked, unreadable
from duetime.model.shown import shown

Told: TypeAlias = tuple[JobId, int, Instant, str, str, str]
"""What the server tells of one: the job, the fence, the due time, the line, the arguments and the extras."""
_WORDS: Final = 6
EXTRAS: Final = (
    "failures", "crashes", "blames", "on_crash", "retries", "timeout", "schedule", "occurrence", "cancel_requested_at",
    "unique_key", "tags", "parent", "callbacks", "expires_at", "result_ttl", "failure_ttl", "gate",
)  # fmt: skip
"""The columns of a job that share one field, in the order in which they end a claim."""
_SPECIAL: Final = Claim._fields.index("failures")
_TEXTS: Final = frozenset({"on_crash", "schedule", "unique_key", "tags", "parent", "callbacks", "gate"})
_ABSENT: Final[dict[str, Any]] = {"failures": 0, "crashes": 0, "blames": 0, "on_crash": "retry"}


class Adopted(NamedTuple):
    """A claim on what a dead worker had, with who that was and since when it ran."""

    claim: Claim
    worker: str
    started_at: Instant | None


class _Claims:
    """Reads claims; a row that somebody has edited by hand is handed out as it is, to fail alone."""

    _decoder: Final = msgspec.msgpack.Decoder(tuple[dict[str, Any], list[Any]])

    def decode(self, packed: bytes, /) -> list[Claim]:
        """Return claims."""
        facts, _ = self._decoder.decode(packed)
        words = iter(facts.get("claims", ()))
        return _claims(zip(*[words] * _WORDS, strict=True), facts.get("claim_id", ""), facts["now"])


class _Orphans:
    """Reads claims on what dead workers had."""

    _decoder: Final = msgspec.msgpack.Decoder(tuple[dict[str, Any], list[tuple[Any, str, Any]]])

    def decode(self, packed: bytes, /) -> tuple[dict[str, Any], list[Adopted]]:
        """Return facts, and claims with what they were before."""
        facts, found = self._decoder.decode(packed)
        claims = _claims((told for told, _, _ in found), facts["claim_id"], facts["now"])
        pairs = zip(claims, found, strict=True)
        return facts, [Adopted(claim, worker, started_at) for claim, (_, worker, started_at) in pairs]


CLAIMS: Final = _Claims()
ORPHANS: Final = _Orphans()


def _claims(found: Iterable[Told], claim_id: str, now: Instant) -> list[Claim]:
    claims: list[Claim] = []
    for job_id, fence, due_at, line, payload, extras in found:
        queue, priority, task = _place(line)
        claims.append(
            Claim(job_id, fence, claim_id, task, payload, queue, priority, due_at, now, *_special(extras))
        )
    return claims


@lru_cache(maxsize=1024)
def _place(line: str) -> tuple[str, int, str]:
    """Return the queue, the priority and the task that a line stands for."""
    queue, priority, task = line.split("|", 2)
    return queue, int(priority), task


@lru_cache(maxsize=1024)
def _special(extras: str) -> tuple[Any, ...]:
    """Return the columns that share a field, which jobs of one kind have in common."""
    given, problem = _read(extras)
    values = [_value(name, (_ABSENT | given).get(name)) for name in EXTRAS]
    claim = checked(Claim("", 0, "", "", "", "", 0, 0, 0, *values))
    return (claim if problem is None else claim._replace(problem=problem))[_SPECIAL:]


def _read(extras: str) -> tuple[dict[str, Any], str | None]:
    try:
        given = msgspec.json.decode(extras, type=dict[str, Any]) if extras else {}
    except (msgspec.MsgspecError, RecursionError) as error:
        # The server is less strict.
        return {}, unreadable(f"extras is {shown(extras)}: {error}")
    return given, None


def _value(name: str, told: Any) -> Any:
    if name in _TEXTS or not isinstance(told, str):
        return told
    try:
        return int(told)
    except ValueError:
        return told
