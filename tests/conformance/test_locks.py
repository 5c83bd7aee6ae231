from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from duetime.locks import DistributedLock, open_lock
from duetime.testing.lock_conformance import LockSuite, MakeLock


class TestStoreLocks(LockSuite):
    @pytest.fixture
    def make_lock(self, store_url: str) -> MakeLock:
        namespace = f"locks_{secrets.token_hex(4)}"

        def make(name: str, *, ttl: float = 30, timeout: float | None = None) -> DistributedLock:
            return open_lock(store_url, name, ttl=ttl, timeout=timeout, namespace=namespace)

        return make


class TestFileLocks(LockSuite):
    @pytest.fixture
    def make_lock(self, tmp_path: Path) -> MakeLock:
        def make(name: str, *, ttl: float = 30, timeout: float | None = None) -> DistributedLock:
            return open_lock(f"file://{tmp_path}", name, ttl=ttl, timeout=timeout)

        return make
