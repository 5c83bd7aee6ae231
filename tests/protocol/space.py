"""A breadth-first search of every state a small machine can reach, with shortest traces."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

S = TypeVar("S", bound=Hashable)


class Step(NamedTuple, Generic[S]):
    """One possible next state, told as a sentence."""

    sentence: str
    state: S
    luck: bool = False
    """True for what nobody may count on: a failure, or a message that comes at last."""
    event: Hashable = None
    """What happened in this step, for invariants that look at more than the two states."""


class Space(Protocol[S]):
    """A machine: where it starts, what can happen next, what it is for, and which states mirror each other."""

    def initial(self) -> S: ...
    def steps(self, state: S) -> Iterator[Step[S]]: ...
    def done(self, state: S) -> bool: ...
    def twin(self, state: S) -> S: ...


Invariant = Callable[[S, Step[S]], bool]
Trace = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """An invariant that a step broke, and the shortest way there."""

    invariant: str
    trace: Trace

    def __str__(self) -> str:
        return _told(f"breaks “{self.invariant}”", self.trace)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """What a search found; without a breach it has seen every reachable state."""

    states: int
    steps: int
    depth: int
    breach: Breach | None = None
    stuck: Trace | None = None
    """The shortest way to a state from which, without luck, no end can be reached."""

    def __str__(self) -> str:
        if self.breach is not None:
            return str(self.breach)
        if self.stuck is not None:
            return _told("can never finish from here", self.stuck)
        return f"holds over all {self.states:,} states ({self.steps:,} steps, {self.depth} deep)"


def explore(space: Space[S], invariants: Mapping[str, Invariant[S]]) -> Explored:
    """Visit every reachable state, nearest first, and stop at the first step that breaks an invariant."""
    return _Search(space, invariants).run()


class _Search(Generic[S]):
    """The states met so far, numbered in the order they were met."""

    def __init__(self, space: Space[S], invariants: Mapping[str, Invariant[S]]) -> None:
        self.space = space
        self.invariants = invariants
        self.states: list[S] = [space.initial()]
        self.numbers: dict[S, int] = {self.states[0]: 0}
        self.origins: list[tuple[int, str]] = [(-1, "")]
        self.depths: list[int] = [0]
        # Only the steps that need no luck, backwards: the search for stuck states walks them from the ends.
        self.sources: list[list[int]] = [[]]
        self.steps = 0

    def run(self) -> Explored:
        here = 0
        while here < len(self.states):
            breach = self._expand(here)
            if breach is not None:
                return self._found(breach=breach)
            here += 1
        return self._found(stuck=self._stuck())

    def _expand(self, here: int) -> Breach | None:
        state = self.states[here]
        for step in self.space.steps(state):
            self.steps += 1
            for name, holds in self.invariants.items():
                if not holds(state, step):
                    return Breach(invariant=name, trace=(*self._trace(here), step.sentence))
            there = self._number(here, step)
            if not step.luck:
                self.sources[there].append(here)
        return None

    def _number(self, here: int, step: Step[S]) -> int:
        there = self.numbers.get(step.state)
        if there is None:
            there = self.numbers.get(self.space.twin(step.state))
        if there is None:
            there = self.numbers[step.state] = len(self.states)
            self.states.append(step.state)
            self.origins.append((here, step.sentence))
            self.depths.append(self.depths[here] + 1)
            self.sources.append([])
        return there

    def _stuck(self) -> Trace | None:
        """The trace to the nearest state from which luckless steps never lead to an end."""
        frontier = [number for number, state in enumerate(self.states) if self.space.done(state)]
        safe = set(frontier)
        while frontier:
            for source in self.sources[frontier.pop()]:
                if source not in safe:
                    safe.add(source)
                    frontier.append(source)
        lost = (number for number in range(len(self.states)) if number not in safe)
        number = next(lost, None)
        return None if number is None else self._trace(number)

    def _trace(self, number: int) -> Trace:
        sentences: list[str] = []
        while number > 0:
            number, sentence = self.origins[number]
            sentences.append(sentence)
        return tuple(reversed(sentences))

    def _found(self, *, breach: Breach | None = None, stuck: Trace | None = None) -> Explored:
        return Explored(
            states=len(self.states), steps=self.steps, depth=self.depths[-1], breach=breach, stuck=stuck
        )


def _told(verdict: str, trace: Trace) -> str:
    lines = [f"{number:>3}. {sentence}" for number, sentence in enumerate(trace, start=1)]
    return "\n".join([*lines, f"     -> {verdict}"])
