"""No worker is let in while the source of a copy is being told that the work goes on elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from duetime.errors import StoreMoved
from duetime.stores.base import Store
from duetime.stores.open import open_store
from duetime.testing.conformance.kit import hire


@pytest_asyncio.fixture
async def stores(server_url: str) -> AsyncIterator[tuple[Store, Store]]:
    """One of its own, for what is noted outlives a test that fails; opened twice."""
    both = open_store(server_url, namespace="left"), open_store(server_url, namespace="left")
    for store in both:
        await store.open()
    yield both
    for store in both:
        await store.close()


@pytest.mark.covers("copy-source-runs-on")
async def test_a_worker_that_nobody_saw_before_does_not_stay(
    stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = stores
    driver: Any = here._driver  # type: ignore[attr-defined]
    write = driver.write

    async def write_and_note(*script: Any, **options: Any) -> Any:
        answer = await write(*script, **options)
        await there.set_moved("a was copied to b")
        return answer

    monkeypatch.setattr(driver, "write", write_and_note)
    with pytest.raises(StoreMoved):
        await hire(here, "late")
    assert [worker.state for worker in await there.workers()] == ["stopped"]
