from __future__ import annotations

import pytest

from duetime.model.states import LEGAL, State


def test_the_table_names_every_state() -> None:
    assert set(LEGAL) == set(State)


def test_every_state_but_the_first_can_be_reached() -> None:
    assert {state for targets in LEGAL.values() for state in targets} == set(State)


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED, State.CANCELLED, State.SKIPPED])
def test_what_has_ended_stays_as_it_is(state: State) -> None:
    assert state.terminal
    assert not LEGAL[state]


@pytest.mark.parametrize("state", [State.PENDING, State.RUNNING])
def test_what_lives_can_still_end(state: State) -> None:
    assert not state.terminal
    assert any(target.terminal for target in LEGAL[state])


def test_nothing_succeeds_or_fails_without_running() -> None:
    assert LEGAL[State.PENDING].isdisjoint({State.SUCCEEDED, State.FAILED})


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        LEGAL[State.SUCCEEDED] = frozenset({State.PENDING})  # type: ignore[index]
