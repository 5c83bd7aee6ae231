"""Jobs as values: what is asked for, what is claimed, the rarely used terms of both, and unique keys."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from enum import Enum, StrEnum, auto
from types import NoneType
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias

from duetime.errors import InvalidOption
from duetime.model.states import State
from duetime.model.text import check_text, shown
from duetime.model.time import MINUTE, Instant, Micros

FOREVER: Final = -1
"""A time to live that never ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTerms:
    """The rarely used terms of a job."""

    expires: Micros | None = None
    """How long after its due time a job may still start."""
    tags: tuple[str, ...] = ()
    callbacks: str | None = None
    """What to enqueue when the job ends, as JSON that needs no code to be understood."""
    gate: str | None = None
    """The fleet-wide limit the job runs under."""
    result_ttl: Micros | None = None
    """How long the result is kept after success: `None` as long as the record, 0 not at all, or `FOREVER`."""
    failure_ttl: Micros | None = None
    """The same for the error of a job that failed."""
    headers: str | None = None
    """Texts by name that go along, as JSON."""
    secret: str | None = None
    """The arguments that are masked where they are shown, as `join_tags` writes their names; `return` is the result."""

    def to_text(self) -> str | None:
        """Return what a schedule stores, `None` when there is nothing to say."""
        said = {name: value for name, value in asdict(self).items() if value not in (None, ())}
        return json.dumps(said, sort_keys=True) if said else None

    @classmethod
    def from_text(cls, text: str | None) -> Self | JobTerms:
        """Read what a schedule has stored, without terms of later versions; raise `InvalidOption` if it cannot be read."""
        if text is None:
            return NO_TERMS
        try:
            found: dict[str, Any] = json.loads(text)
            said = {name: found[name] for name in _TERM_NAMES & found.keys()}
            said["tags"] = tuple(said.get("tags", ()))
            sound = all(isinstance(value, _TERM_TYPES[name]) for name, value in said.items())
            if sound and all(isinstance(tag, str) for tag in said["tags"]):
                return cls(**said)
        except (ValueError, TypeError, AttributeError, RecursionError):
            pass
        raise InvalidOption(f"the terms {shown(text)} cannot be read")


_TERM_NAMES: Final = frozenset(one.name for one in fields(JobTerms))
_TERM_TYPES: Final = {
    **dict.fromkeys(_TERM_NAMES, (int, NoneType)),
    **dict.fromkeys(("callbacks", "gate", "headers", "secret"), (str, NoneType)),
    "tags": (tuple,),
}
NO_TERMS: Final = JobTerms()
"""What most jobs carry: nothing."""


def join_tags(tags: tuple[str, ...]) -> str | None:
    """Write tags so that `|tag|` is found in the text; `None` for no tags."""
    return f"|{'|'.join(tags)}|" if tags else None


def split_tags(text: str | None) -> tuple[str, ...]:
    """Read what `join_tags` wrote."""
    return tuple(text[1:-1].split("|")) if text else ()


JobId: TypeAlias = str
OnCrash: TypeAlias = Literal["retry", "fail"]
IfExists: TypeAlias = Literal["return", "replace", "raise"]


class JobKind(StrEnum):
    """What a job was made by."""

    SCHEDULED = "scheduled"
    """A schedule, at its own times or because someone triggered it."""
    ONE_OFF = "one_off"
    """Anything else."""


FIRST_PRIORITY = 0
LAST_PRIORITY = 9
DEFAULT_PRIORITY = 5
DEFAULT_QUEUE = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A claim to be the only job of a task under this name."""

    value: str
    if_exists: IfExists = "return"
    keep: Micros | None = None
    """How long past its end the job holds the key."""
    period: Micros | None = None
    """How long from now the job holds the key, even if it ends before."""

    def __post_init__(self) -> None:
        # A database would replace what it cannot keep, so that two keys became one.
        check_text(self.value, what="key")


class NewJob(NamedTuple):
    """A request to run a task, ready to be stored; its id is made here, so storing it twice is harmless."""

    id: JobId
    task: str
    payload: str
    """The arguments as a JSON object, by parameter name."""
    due_at: Instant | None = None
    """When it is due; `None` means now, by the store's clock."""
    delay: Micros = 0
    """Added to the store's clock when `due_at` is not given."""
    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    on_crash: OnCrash = "retry"
    retries: int | None = None
    """Overrides the task's number of retries."""
    timeout: Micros | None = None
    """Overrides the task's timeout."""
    schedule: str | None = None
    occurrence: Instant | None = None
    state: State = State.PENDING
    """`SKIPPED` for an occurrence that is recorded but will not run."""
    reason: str | None = None
    span_first: Instant | None = None
    """The first occurrence this record stands for: where it was skipped, and where a job makes up for it."""
    span_count: int = 1
    """How many occurrences this record stands for; a run of skipped ones shares one record."""
    terms: JobTerms = NO_TERMS
    key: Key | None = None
    parent: JobId | None = None
    """The job that this one repeats or was called by."""
    expires_at: Instant | None = None
    """When the job expires; overrides its terms."""

    @property
    def plain(self) -> bool:
        """Whether the job asks for nothing special."""
        return self.terms is NO_TERMS and self.key is None and self.parent is None and self.expires_at is None


class JobEdit(NamedTuple):
    """What is to become of a job that waits; what is `None` stays as it is."""

    due_at: Instant | None = None
    delay: Micros | None = None
    """Due this long from now."""
    postpone: Micros | None = None
    """Due this long after its due time, or from now if that has passed."""
    queue: str | None = None
    priority: int | None = None
    retries: int | None = None
    timeout: Micros | None = None
    expires: Micros | None = None
    """How long after its due time it may still start."""
    expires_at: Instant | None = None
    payload: str | None = None
    gate: str | None = None
    """The gate of a job with the new payload; without one it stays as it is."""
    if_due_at: Instant | None = None
    """Leave a job alone that is not due then."""
    if_fence: int | None = None
    """Leave a job alone that was claimed since, or is not as the following say."""
    if_queue: str | None = None
    if_priority: int | None = None
    if_retries: int | None = None
    if_timeout: Micros | None = None
    if_expires_at: Instant | None = None
    if_payload: str | None = None


SOON: Final[Micros] = MINUTE
"""Workers are told of jobs that fall due within this time; they find later ones when they next look."""


def due_soon(jobs: Iterable[NewJob], now: Instant | None) -> bool | None:
    """Return whether one of these new jobs falls due soon; `None` if that depends on the store's clock and `now` is unknown."""
    unknown = False
    for job in jobs:
        if job.state is not State.PENDING:
            continue
        if job.due_at is None:
            if job.delay <= SOON:
                return True
        elif now is None:
            unknown = True
        elif job.due_at - now <= SOON:
            return True
    return None if unknown else False


class Token(NamedTuple):
    """Proof of a claim; every later write on its behalf carries all three parts."""

    job_id: JobId
    fence: int
    claim_id: str


class Claim(NamedTuple):
    """A worker's right to run a job while its lease lasts."""

    job_id: JobId
    fence: int
    claim_id: str
    task: str
    payload: str
    queue: str
    priority: int
    due_at: Instant
    claimed_at: Instant
    """The store's clock at the claim."""
    failures: int
    crashes: int
    """How often a worker died while the job was started."""
    blames: int
    """How often it was the only suspect."""
    on_crash: OnCrash
    retries: int | None
    timeout: Micros | None
    schedule: str | None
    occurrence: Instant | None
    cancel_requested_at: Instant | None
    key: str | None = None
    tags: str | None = None
    """As `join_tags` writes them."""
    parent: JobId | None = None
    callbacks: str | None = None
    expires_at: Instant | None = None
    result_ttl: Micros | None = None
    failure_ttl: Micros | None = None
    headers: str | None = None
    gate: str | None = None
    queue_limited: bool = False
    """Whether a limit of its queue let it through."""
    problem: str | None = None
    """Why its row cannot be read, if it cannot: such a job is ended, not run."""

    @property
    def cancel_requested(self) -> bool:
        """Whether it was asked to end."""
        return self.cancel_requested_at is not None

    @property
    def limited(self) -> bool:
        """Whether other jobs may wait for its end."""
        return self.queue_limited or self.gate is not None

    @property
    def token(self) -> Token:
        """The proof to settle with."""
        return Token(self.job_id, self.fence, self.claim_id)

    @property
    def attempt(self) -> int:
        """Which try this is, from 1: failures and crashes before it, plus one."""
        return self.failures + self.crashes + 1


class KeyHolder(NamedTuple):
    """A job that has a key, or had it not long ago."""

    id: JobId
    state: State
    payload: str
    finished_at: Instant | None
    keep: Micros | None
    until: Instant | None

    def holds(self, now: Instant) -> bool:
        """Whether the job holds the key now: while it lives, and after its end if it asked for that."""
        if self.finished_at is None:
            return True
        kept = self.keep is not None and now < self.finished_at + self.keep
        return kept or (self.until is not None and now < self.until)


class KeyDecision(Enum):
    """What becomes of a request whose key another job has."""

    JOIN = auto()
    """The other job serves the request."""
    REPLACE = auto()
    """The other job, which has not started, becomes the one that was asked for."""
    TAKE_OVER = auto()
    """The request is stored with the key, and the other job loses it."""
    REFUSE = auto()


def decide_key(asked: Key, holder: KeyHolder, *, now: Instant) -> KeyDecision:
    """Decide about a request for a key that another job has."""
    if not holder.holds(now):
        return KeyDecision.TAKE_OVER
    match asked.if_exists:
        case "return":
            return KeyDecision.JOIN
        case "raise":
            return KeyDecision.REFUSE
        case "replace":
            # The latest request is never lost: a job that runs or has ended cannot be replaced.
            return KeyDecision.REPLACE if holder.state is State.PENDING else KeyDecision.TAKE_OVER
