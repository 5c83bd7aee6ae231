from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration import ledger
from tests.integration.kit import Fleet, FleetAt
from tests.integration.nursery import Nursery, opened


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Where worker processes come from."""
    with opened() as nursery:
        yield nursery


@pytest.fixture
def fleet_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nursery: Nursery) -> Iterator[FleetAt]:
    """Makes the worker processes of a test on any store."""
    monkeypatch.setenv(ledger.VARIABLE, str(tmp_path / "ledger"))
    fleets: list[Fleet] = []

    def make(url: str) -> Fleet:
        fleets.append(Fleet(url, tmp_path, nursery))
        return fleets[-1]

    yield make
    for fleet in fleets:
        fleet.close()


@pytest.fixture
def fleet(store_url: str, fleet_at: FleetAt) -> Fleet:
    """The worker processes of a test, none yet, on each kind of store."""
    return fleet_at(store_url)
