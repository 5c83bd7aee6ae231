"""A trigger whose jobs fall due a little later than their occurrence, each by its own amount."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Self

from duetime.errors import InvalidTrigger
from duetime.model import durations
from duetime.model.durations import DAY
from duetime.model.instants import LATEST, MILLISECOND, Instant, Micros
from duetime.model.triggers.base import check_length
from duetime.model.triggers.compound import Wrapper, quoted


@dataclass(frozen=True, slots=True)
class Jitter(Wrapper):
    """The occurrences of a trigger, with jobs that fall due less than `most` later.

    By how much is drawn from the seed and the occurrence, so that every process comes to the same time.
    """

    most: Micros
    seed: str = ""

    def __post_init__(self) -> None:
        Wrapper.__post_init__(self)
        check_length(self.most, what="jitter", low=MILLISECOND, high=DAY, expected="from 1 ms to 1 day")
        if not isinstance(self.seed, str):
            raise InvalidTrigger(f"the seed of a jitter is text, not {type(self.seed).__name__}")

    def due(self, occurrence: Instant) -> Instant:
        """Return when the job of an occurrence falls due."""
        drawn_from = f"jitter:{self.seed}:{occurrence}".encode("utf-8", "surrogatepass")
        draw = int.from_bytes(hashlib.blake2b(drawn_from, digest_size=8).digest(), "big")
        return min(self.trigger.due(occurrence) + draw % self.most, LATEST)

    def seeded(self, name: str) -> Self:
        """Return this rule drawing from `name`, unless it already has a seed."""
        return replace(self, trigger=self.trigger.seeded(name), seed=self.seed or name)

    def describe(self) -> str:
        """Say the rule in English."""
        return f"{quoted(self.trigger)}, each up to {durations.describe(self.most)} later"

    def to_spec(self) -> dict[str, object]:
        """Return the rule as JSON-able data."""
        spec: dict[str, object] = {"type": "jitter", "trigger": self.trigger.to_spec(), "most": self.most}
        return spec | {"seed": self.seed} if self.seed else spec
