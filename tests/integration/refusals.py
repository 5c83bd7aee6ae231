"""Stores that cannot be opened."""

from __future__ import annotations

import pytest

from duetime.errors import StoreError
from duetime.stores.open import open_store


async def refusal(url: str) -> StoreError:
    """Return the error that a store opens with."""
    store = open_store(url)
    with pytest.raises(StoreError) as refused:
        await store.open()
    return refused.value
