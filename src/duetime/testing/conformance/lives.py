"""Random lives of a store agree with the model's, step by step."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from itertools import count
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from duetime.stores.base import Store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.suite import MakeStore, StoreSuite
from duetime.testing.job_machine import JobMachine
from duetime.testing.machine import StoreMachine, World
from duetime.testing.schedule_machine import ScheduleMachine

T = TypeVar("T")

PATIENCE = 30


@pytest.fixture
def lives() -> settings:
    """How many lives, and how long: one for five examples of the profile in use."""
    return settings(max_examples=max(1, settings().max_examples // 5))


class TestRandomLives(StoreSuite):
    """All verbs together; a module that defines `lives` anew can have more of them, or fewer."""

    @pytest.mark.parametrize("machine", [JobMachine, ScheduleMachine])
    async def test_a_store_agrees_with_the_model_after_every_step(
        self, make_store: MakeStore, lives: settings, machine: type[StoreMachine]
    ) -> None:
        loop = asyncio.get_running_loop()
        numbers = count()

        def run(verb: Coroutine[Any, Any, T]) -> T:
            return asyncio.run_coroutine_threadsafe(verb, loop).result(PATIENCE)

        async def make(clock: FakeClock) -> Store:
            return await make_store(clock, namespace=f"life{next(numbers)}")

        world = World(run, make)
        quiet = settings(
            lives,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=[
                HealthCheck.too_slow,
                HealthCheck.data_too_large,
                HealthCheck.filter_too_much,
            ],
        )
        factory: Any = partial(machine, world)
        # Hypothesis knows no event loop: it lives in a thread, and the store stays here.
        await asyncio.to_thread(run_state_machine_as_test, factory, settings=quiet)
