"""Stores that cannot be opened."""

from __future__ import annotations

import pytest

from duetime.errors import StoreError
from duetime.stores.base import DoctorCheck
from duetime.stores.open import open_store


async def refusal(url: str) -> StoreError:
    """Return the error that a store opens with."""
    store = open_store(url)
    with pytest.raises(StoreError) as refused:
        await store.open()
    return refused.value


async def finding(url: str, name: str) -> DoctorCheck:
    """Return what the doctor says of one thing."""
    store = open_store(url)
    await store.open(check=False)
    try:
        return next(check for check in await store.doctor() if check.name == name)
    finally:
        await store.close()
