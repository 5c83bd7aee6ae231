"""Gives the store suite its stores: every one that `--store` chose."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from duetime.model.clock import Clock
from duetime.stores.base import Store
from duetime.stores.open import open_store
from duetime.testing.conformance import MakeStore, TestRandomLives


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give random lives the time to shrink what they found to the shortest story."""
    for item in items:
        if isinstance(item, pytest.Function) and item.cls is TestRandomLives:
            item.add_marker(pytest.mark.timeout(1_800))


@pytest_asyncio.fixture
async def make_store(store_url: str) -> AsyncIterator[MakeStore]:
    made: list[Store] = []

    async def make(clock: Clock, *, namespace: str = "duetime") -> Store:
        store = open_store(store_url, namespace=namespace, clock=clock)
        made.append(store)
        await store.open()
        return store

    yield make
    await asyncio.gather(*(store.close() for store in made))
