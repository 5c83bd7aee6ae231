from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.space import Space, Step, explore


class Stairs:
    """Climb by one or two up to the top; below the top a trap can open, and luck alone leads out."""

    def __init__(self, *, top: int, trap: int | None = None, mirrored: bool = False) -> None:
        self.top = top
        self.trap = trap
        self.mirrored = mirrored

    def initial(self) -> int:
        return 0

    def steps(self, state: int) -> Iterator[Step[int]]:
        if state == self.trap:
            yield Step("is lifted out", self.top, luck=True)
            return
        for stride in (1, 2):
            if abs(state) + stride <= self.top:
                yield Step(f"climbs {stride}", state + stride if state >= 0 else state - stride)
        if self.mirrored and state == 0:
            yield Step("goes the other way", -1)

    def done(self, state: int) -> bool:
        return abs(state) == self.top

    def twin(self, state: int) -> int:
        return -state if self.mirrored else state


def states_of(space: Space[int]) -> int:
    return explore(space, {}).states


def test_every_reachable_state_is_counted_once() -> None:
    found = explore(Stairs(top=5), {})

    assert (found.states, found.steps, found.depth) == (6, 9, 3)
    assert found.breach is None
    assert found.stuck is None


def test_a_breach_comes_with_the_shortest_trace() -> None:
    found = explore(Stairs(top=9), {"never on the fifth stair": lambda _, step: step.state != 5})

    assert found.breach is not None
    assert found.breach.invariant == "never on the fifth stair"
    assert len(found.breach.trace) == 3


def test_a_state_that_only_luck_leads_out_of_is_stuck() -> None:
    assert explore(Stairs(top=5, trap=3), {}).stuck == ("climbs 1", "climbs 2")


def test_mirrored_states_are_searched_once() -> None:
    assert states_of(Stairs(top=5, mirrored=True)) == states_of(Stairs(top=5))
