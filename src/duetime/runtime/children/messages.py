"""What a worker and a child process tell each other: records with a kind, one line of JSON each."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, TypeAlias, get_args

import msgspec

from duetime.model.instants import Instant, Micros
from duetime.model.job import Claim, Token
from duetime.model.outcome import Failed, Outcome
from duetime.runtime.children.address import Address, Home

LONGEST_LINE = 16 * 1024 * 1024
"""More than any record takes: arguments, results and texts are bounded where they are made."""

_OUTCOMES: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Outcome)}


class Setup(msgspec.Struct, frozen=True):
    """What a child is told first."""

    path: list[str]
    argv: list[str]
    homes: list[Home]
    """Modules to import before the first job asks for them."""
    log_level: int


class Job(msgspec.Struct, frozen=True, tag_field="kind", tag="job"):
    """Run this."""

    address: Address
    claim: Claim
    started_at: Instant
    timeout: Micros | None


class Stop(msgspec.Struct, frozen=True, tag_field="kind", tag="stop"):
    """The job that runs is asked to end."""

    reason: str


class Ready(msgspec.Struct, frozen=True, tag_field="kind", tag="ready"):
    """The child waits for its first job."""


class Ended(msgspec.Struct, frozen=True, tag_field="kind", tag="ended"):
    """What came of a job, and how much memory the child holds after it."""

    outcome: str
    values: dict[str, Any]
    memory: int

    @classmethod
    def of(cls, outcome: Outcome, *, memory: int) -> Ended:
        """Write an outcome down."""
        if isinstance(outcome, Failed):
            # An exception stays in the process that raised it; its texts go.
            outcome = replace(outcome, cause=None)
        return cls(type(outcome).__name__, msgspec.to_builtins(outcome), memory)

    def read(self) -> Outcome:
        """Return the outcome that was written down."""
        outcome: Outcome = msgspec.convert(self.values, _OUTCOMES[self.outcome])
        return outcome


class Told(msgspec.Struct, frozen=True, tag_field="kind", tag="progress"):
    """How far a job is."""

    token: Token
    fraction: float
    note: str


class Logged(msgspec.Struct, frozen=True, tag_field="kind", tag="log"):
    """A log record of the child."""

    token: Token | None
    """Of the job in whose context it was made: others may have left threads behind."""
    name: str
    level: int
    text: str
    created: float
    path: str
    line: int
    function: str
    thread: str
    exception: str | None


Order: TypeAlias = Job | Stop
Word: TypeAlias = Ready | Ended | Told | Logged

word_decoder: msgspec.json.Decoder[Word] = msgspec.json.Decoder(Word)


def to_line(word: Word) -> bytes:
    """Return a word as one line; JSON has no line breaks of its own."""
    return msgspec.json.encode(word) + b"\n"


def to_order_line(order: Setup | Order) -> bytes:
    """Return an order as one line of ASCII: names of files and arguments of programs need not be Unicode."""
    return json.dumps(msgspec.to_builtins(order)).encode() + b"\n"


def read_order(line: bytes) -> Order:
    """Return the order that was written down."""
    order: Order = msgspec.convert(json.loads(line), Order)
    return order
