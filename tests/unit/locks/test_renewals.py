from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from duetime.locks import open_lock
from duetime.locks.file import FileLock


async def test_a_lock_that_is_released_while_it_is_renewed_is_not_held_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed = threading.Event()

    async def release_meanwhile(lock: FileLock, *, token: str) -> bool:
        assert lock.held, token
        assert await lock.release()
        renewed.set()
        return True

    monkeypatch.setattr(FileLock, "try_extend", release_meanwhile)
    lock = open_lock(f"file://{tmp_path}", "reindex", ttl=0.3)
    assert await lock.acquire()
    assert await asyncio.to_thread(renewed.wait, 20)
    # It is served by the thread that renews, after the renewal.
    assert await asyncio.to_thread(lock.sync.owner) is None
    # Were it taken for held, this task would be told that it waits for itself.
    assert await lock.acquire(timeout=5, renew=False)
