"""The claim protocol, searched in full; and each guard taken away, to see what it is for.

`PROTOCOL_MISHAPS=3` searches deeper than the suite does, which takes minutes instead of seconds.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.protocol.invariants import ALWAYS, DURABLE, at_most_once
from tests.protocol.protocol import ClaimProtocol, Scope
from tests.protocol.rows import Rules
from tests.protocol.space import Explored, Invariant, explore
from tests.protocol.world import State

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "protocol.md"
MISHAPS = int(os.environ.get("PROTOCOL_MISHAPS", "2"))

FIRING = Scope(mishaps=1, jobs=0, occurrences=1, ahead=False, prune=True)
LOSING = Scope(failover=True)
SMALL = Scope(mishaps=1)
CUT_OFF = Scope(sessions=True, one_host=True)
ONCE: dict[str, Invariant[State]] = {"a job that must not run twice runs once": at_most_once}


def search(rules: Rules, scope: Scope, invariants: dict[str, Invariant[State]]) -> Explored:
    found = explore(ClaimProtocol(rules, scope), invariants)
    print(found)  # noqa: T201 - the count or the trace is what one runs the search for
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakened:
    """The protocol without one of its guards, and the promise that this breaks."""

    rules: Rules
    breaks: str
    steps: int
    scope: Scope = field(default_factory=Scope)


STUCK = "can never finish"
ZOMBIE = "no settlement is accepted from a claim that was lost"
COUNTS = "only runs that began are counted"
OCCURRENCE = "an occurrence makes one job"
RESCUED = "only a claim whose lease ran out or whose process is gone is rescued"
LIVE = "at most one live claim"

WEAKENED = {
    "a fence of the job's id alone": Weakened(
        rules=Rules(fence="id"), breaks="a terminal row never changes", steps=5
    ),
    "a fence of id and state": Weakened(rules=Rules(fence="state"), breaks=ZOMBIE, steps=4),
    "a fence of id, state and worker name": Weakened(rules=Rules(fence="worker"), breaks=ZOMBIE, steps=5),
    "a fence without claim id in a store that loses writes": Weakened(
        rules=Rules(fence="integer"), scope=LOSING, breaks=ZOMBIE, steps=5
    ),
    "a claim by a worker that is not alive": Weakened(
        rules=Rules(claim_needs_alive=False), breaks=RESCUED, steps=4
    ),
    "a rescue under the old claim": Weakened(
        rules=Rules(rescue_takes_new_claim=False), breaks=ZOMBIE, steps=5
    ),
    "a pulse that revives the dead": Weakened(rules=Rules(pulse_needs_alive=False), breaks=LIVE, steps=5),
    "a lost connection taken for a death": Weakened(
        rules=Rules(lost_session_is_death=True), scope=CUT_OFF, breaks=LIVE, steps=4
    ),
    "a rescue that ignores whether the job had started": Weakened(
        rules=Rules(rescue_looks_at_start=False), breaks=COUNTS, steps=5
    ),
    "a release that costs an attempt": Weakened(rules=Rules(release_is_free=False), breaks=COUNTS, steps=2),
    "claiming ahead what must not run twice": Weakened(
        rules=Rules(on_crash="fail", fail_claims_are_starts=False),
        breaks="a job that must not run twice runs once",
        steps=7,
    ),
    "firing without compare-and-set and unique occurrences": Weakened(
        rules=Rules(fire_compares=False, occurrence_is_unique=False),
        scope=FIRING,
        breaks=OCCURRENCE,
        steps=3,
    ),
    "firing without compare-and-set": Weakened(
        rules=Rules(fire_compares=False), scope=FIRING, breaks=OCCURRENCE, steps=6
    ),
    "no look-up of a lost answer": Weakened(
        rules=Rules(lost_answers_looked_up=False, unknown_claims_returned=False),
        scope=SMALL,
        breaks=STUCK,
        steps=1,
    ),
    "no return of claims that a failover brought back": Weakened(
        rules=Rules(unknown_claims_returned=False),
        scope=Scope(mishaps=1, late=False, failover=True),
        breaks=STUCK,
        steps=4,
    ),
    "no return of claims that their worker does not know": Weakened(
        rules=Rules(unknown_claims_returned=False), scope=SMALL, breaks=STUCK, steps=3
    ),
}

SAFE = {
    "one job": (Rules(), Scope(mishaps=MISHAPS), DURABLE, 4_000),
    "one job that must not run twice": (
        Rules(on_crash="fail"),
        Scope(mishaps=MISHAPS),
        DURABLE | ONCE,
        500,
    ),
    "two jobs": (Rules(), Scope(mishaps=MISHAPS - 1, jobs=2), DURABLE, 3_000),
    "one occurrence, fired and run and pruned": (
        Rules(),
        Scope(mishaps=MISHAPS, jobs=0, occurrences=1, ahead=False, prune=True),
        DURABLE,
        3_000,
    ),
    "two occurrences": (
        Rules(),
        Scope(mishaps=MISHAPS - 1, jobs=0, occurrences=2, ahead=False),
        DURABLE,
        3_000,
    ),
    "workers that lose their connections, and deaths that are seen": (
        Rules(),
        Scope(mishaps=MISHAPS, sessions=True, one_host=True),
        DURABLE,
        5_000,
    ),
    "lost connections and a job that must not run twice": (
        Rules(on_crash="fail"),
        Scope(mishaps=MISHAPS, sessions=True, one_host=True),
        DURABLE | ONCE,
        600,
    ),
    "a store that loses its last writes": (Rules(), Scope(mishaps=MISHAPS, failover=True), ALWAYS, 10_000),
    "a schedule in a store that loses its last writes": (
        Rules(),
        Scope(mishaps=MISHAPS, jobs=0, occurrences=1, ahead=False, failover=True),
        ALWAYS,
        4_000,
    ),
}


@pytest.mark.timeout(60 if MISHAPS <= 2 else 0)
@pytest.mark.parametrize("name", SAFE)
def test_the_protocol_holds_in_every_reachable_state(name: str) -> None:
    rules, scope, invariants, floor = SAFE[name]

    found = search(rules, scope, invariants)

    assert found.breach is None, str(found)
    assert found.stuck is None, str(found)
    # A search that got stuck early would also find nothing wrong.
    assert found.states > floor


@pytest.mark.parametrize("name", WEAKENED)
def test_without_a_guard_a_promise_breaks(name: str) -> None:
    weakened = WEAKENED[name]
    # The trace is told for the promise that the guard is there for; cheaper ones may break on the way.
    watched = {key: holds for key, holds in (DURABLE | ONCE).items() if key == weakened.breaks}

    found = search(weakened.rules, weakened.scope, watched)

    trace = found.breach.trace if found.breach is not None else found.stuck
    assert trace is not None
    assert len(trace) == weakened.steps
    assert str(found) in PAGE.read_text(encoding="utf-8"), f"{PAGE.name} tells another story:\n{found}"


def test_an_integer_fence_is_enough_while_the_store_keeps_its_writes() -> None:
    found = search(Rules(fence="integer"), Scope(), DURABLE)

    assert found.breach is None, str(found)
    assert found.states > 4_000


def test_the_state_guard_alone_keeps_terminal_rows_final() -> None:
    final = "a terminal row never changes"

    assert search(Rules(fence="state"), Scope(), {final: DURABLE[final]}).breach is None


def test_a_fence_of_the_id_alone_lets_two_claims_settle_one_run() -> None:
    once = "one run has one accepted settlement"

    assert search(Rules(fence="id"), Scope(), {once: DURABLE[once]}).breach is not None


@pytest.mark.parametrize("name", sorted(DURABLE.keys() - ALWAYS.keys()))
def test_a_store_that_loses_writes_cannot_promise_more(name: str) -> None:
    assert search(Rules(), LOSING, {name: DURABLE[name]}).breach is not None


def test_compare_and_set_alone_makes_one_job_per_occurrence() -> None:
    assert search(Rules(occurrence_is_unique=False), FIRING, DURABLE).breach is None


def test_an_unstarted_claim_never_fails_its_job_when_it_is_rescued() -> None:
    rules = Rules(on_crash="fail", fail_claims_are_starts=False)

    assert search(rules, SMALL, {COUNTS: DURABLE[COUNTS]}).breach is None


def test_exchanging_the_names_of_the_workers_changes_nothing() -> None:
    protocol = ClaimProtocol(Rules(), Scope(mishaps=1, failover=True))
    seen = {protocol.initial()}
    frontier = list(seen)
    while frontier:
        state = frontier.pop()
        nexts = {step.state for step in protocol.steps(state)}
        assert protocol.twin(protocol.twin(state)) == state
        assert {protocol.twin(after) for after in nexts} == {
            step.state for step in protocol.steps(protocol.twin(state))
        }
        frontier.extend(nexts - seen)
        seen |= nexts
