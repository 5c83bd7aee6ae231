"""A plugin for pytest: fixtures, and the mark that the conformance suite carries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from duetime import Scheduler
    from duetime.testing import FakeClock

# Pytest imports this at every start, so that what the fixtures need is imported by them.


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known to `--strict-markers`."""
    config.addinivalue_line(
        "markers", "covers(*ids): the failures that a test of the conformance suite rules out"
    )


@pytest.fixture
def duetime_clock() -> FakeClock:
    """A clock that stands still until the test moves it."""
    from duetime.testing import FakeClock

    return FakeClock()


@pytest.fixture
def duetime_scheduler(duetime_clock: FakeClock) -> Iterator[Scheduler]:
    """A scheduler without tasks, with a database in memory, that goes by `duetime_clock`."""
    from duetime import Scheduler
    from duetime.testing import sandbox

    with sandbox(Scheduler("sqlite://"), clock=duetime_clock) as scheduler:
        yield scheduler


@pytest.fixture
def duetime_sandbox(duetime_clock: FakeClock) -> Iterator[Callable[..., Scheduler]]:
    """Moves the scheduler of an application to a database in memory, or at `url=`, and to `duetime_clock`, for one test."""
    from duetime.testing import sandbox

    with ExitStack() as stack:
        enter = partial(sandbox, clock=duetime_clock)
        yield lambda *args, **options: stack.enter_context(enter(*args, **options))
