"""Retry policies: how long to wait after the n-th failure, or to give up."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from duetime.errors import InvalidOption
from duetime.model.text import check_whole, shown
from duetime.model.time import Duration, Micros, parse_duration

MAX_RETRIES = 10_000
MAX_FACTOR = 1_000


@runtime_checkable
class RetryPolicy(Protocol):
    """Decides what follows a failure."""

    @property
    def retries(self) -> int:
        """How many times a job may be tried again."""
        ...

    def delay(self, failures: int, rng: random.Random) -> Micros:
        """Return the wait after this many failures, counted from 1."""
        ...


@dataclass(frozen=True, slots=True)
class Exponential:
    """Waits that grow by a factor up to a cap, each drawn from zero up to that bound unless jitter is off."""

    retries: int
    base: Micros
    factor: float
    cap: Micros
    jitter: bool

    def delay(self, failures: int, rng: random.Random) -> Micros:
        """Return the wait after this many failures."""
        try:
            bound = int(min(self.base * self.factor ** (failures - 1), self.cap))
        except OverflowError:
            bound = self.cap if self.base else 0
        return int(rng.uniform(0, bound)) if self.jitter else bound


@dataclass(frozen=True, slots=True)
class Listed:
    """A list of waits, the last of which is repeated."""

    retries: int
    waits: tuple[Micros, ...]

    def delay(self, failures: int, rng: random.Random) -> Micros:  # noqa: ARG002 - shared signature
        """Return the wait for this failure."""
        return self.waits[min(failures, len(self.waits)) - 1] if self.waits else 0


@dataclass(frozen=True, slots=True)
class Computed:
    """Waits from the user's own function of the number of failures."""

    retries: int
    function: Callable[[int], Duration]

    def delay(self, failures: int, rng: random.Random) -> Micros:  # noqa: ARG002 - shared signature
        """Return what the function says."""
        return parse_duration(self.function(failures), what="retry delay")


Retries: TypeAlias = int | Sequence[Duration] | RetryPolicy | None


def exponential(
    retries: int = 3, *, base: Duration = 5, factor: float = 2, cap: Duration = 300, jitter: bool = True
) -> Exponential:
    """Wait 5, 10, 20 … up to 300 seconds, each with full jitter unless it is switched off."""
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 1 <= factor <= MAX_FACTOR:
        raise InvalidOption(f"factor must be a number from 1 to {MAX_FACTOR}, not {shown(factor)}")
    first, longest = parse_duration(base, what="base"), parse_duration(cap, what="cap")
    return Exponential(check_retries(retries), first, float(factor), longest, jitter)


def fixed(retries: int, wait: Duration) -> Listed:
    """Wait the same time before each retry."""
    return Listed(check_retries(retries), (parse_duration(wait, what="wait"),))


def computed(retries: int, function: Callable[[int], Duration]) -> Computed:
    """Wait as long as `function(failures)` says."""
    if not callable(function):
        raise InvalidOption(f"computed() needs a function of the number of failures, not {shown(function)}")
    return Computed(check_retries(retries), function)


def retry_policy(value: Retries) -> RetryPolicy:
    """Read what users write for `retries=`: nothing, a number, a list of waits or a policy."""
    if value is None:
        return NO_RETRIES
    if isinstance(value, int):
        return exponential(value)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)):
        return Listed(len(value), tuple(parse_duration(wait, what="retry delay") for wait in value))
    if isinstance(value, RetryPolicy) and not isinstance(value, type):
        check_retries(value.retries)
        return value
    expected = "a number such as 3, a list of waits such as [1, '10s'], or exponential(3), fixed(3, 10) or computed(3, function)"
    raise InvalidOption(f"retries must be {expected}, not {shown(value)}")


def check_retries(value: int) -> int:
    """Return the number of retries, or raise `InvalidOption`."""
    return check_whole(value, 0, MAX_RETRIES, what="retries")


NO_RETRIES = exponential(0)
"""No retries of its own, and the usual waits for a job that asks for some."""
