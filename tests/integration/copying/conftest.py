from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from duetime.scheduler.transfer.store_copy import NamedStore
from duetime.stores.open import open_store
from duetime.testing.clock import FakeClock
from duetime.testing.conformance.story import tell
from tests.integration.copying.kit import (
    JOBS,
    SCHEDULES,
    Story,
    opened,
    records,
)
from tests.support.stores import chosen


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "pair" in metafunc.fixturenames:
        kinds = chosen(metafunc.config)
        pairs = [(source, target) for source in kinds for target in kinds]
        metafunc.parametrize("pair", pairs, ids=[f"{source}-to-{target}" for source, target in pairs])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Told once for all tests, which only read it."""
    clock = FakeClock()
    url = f"sqlite:///{tmp_path_factory.mktemp('story') / 'story.db'}"
    store = open_store(url, clock=clock)
    await store.open()
    try:
        await tell(store, clock, jobs=JOBS, schedules=SCHEDULES)
        return Story(url, await records(store))
    finally:
        await store.close()


@pytest.fixture
def urls(pair: tuple[str, str], request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """The addresses of two empty stores."""
    source, target = (request.getfixturevalue(f"{kind}_url") for kind in pair)
    return source, f"sqlite:///{tmp_path / 'copy.db'}" if pair == ("sqlite", "sqlite") else target


@pytest_asyncio.fixture
async def two(tmp_path: Path) -> AsyncGenerator[tuple[NamedStore, NamedStore]]:
    """Two empty stores, where it is of no importance of which kind."""
    here, there = (f"sqlite:///{tmp_path / name}" for name in ("here.db", "there.db"))
    async with opened(here) as source, opened(there) as target:
        yield source, target
