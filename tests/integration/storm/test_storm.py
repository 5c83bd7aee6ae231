"""A quarter of a minute of everything at once, on each store; `make storm` takes ten minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.nursery import Nursery
from tests.integration.storm.faults import STORES
from tests.integration.storm.storm import rage
from tests.support.stores import chosen

SECONDS = 15


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store" in metafunc.fixturenames:
        metafunc.parametrize("store", [kind for kind in chosen(metafunc.config) if kind in STORES])


@pytest.mark.timeout(180)
@pytest.mark.covers("worker-killed", "zombie-worker", "database-restart", "store-clock", "occurrence-twice")
async def test_every_promise_holds_in_a_storm(store: str, tmp_path: Path, nursery: Nursery) -> None:
    report = await rage(store, tmp_path, nursery, seconds=SECONDS, seed=1)
    assert report.violations == []
    assert report.jobs > SECONDS, "there was something to break"
    assert sum(report.faults.values()) > SECONDS // 2, "and it was attacked"
