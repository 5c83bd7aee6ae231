from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.peers import peer, runner
from benchmarks.peers.catalogue import named
from benchmarks.peers.cells import Results
from benchmarks.peers.peer import Process
from benchmarks.peers.sizes import TINY

SMALL = replace(TINY, settle=0.0, future=50)


@pytest.fixture(autouse=True)
def our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install nothing: what Duetime needs is in the environment of the tests."""
    monkeypatch.setattr(peer, "python", lambda system: Path(sys.executable))


def test_our_own_cells_are_measured_and_nothing_is_wrong_with_them(tmp_path: Path) -> None:
    system = replace(named("duetime-sqlite"), widths=(100,))
    request = runner.Request(engines=["sqlite"], systems=[system], workloads=["filled"], sizes=SMALL)
    results = Results(tmp_path)
    assert runner.run(request, results, seed=1) == []
    outcomes = {cell.system: outcome for cell, outcome in results}
    assert all(value > 0 for value in outcomes[system.name].figures.values())
    assert outcomes[system.name].wrong == {}


def test_a_worker_begins_when_it_is_let_go(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/peers.db"
    arguments = {"url": url, "settings": {"concurrency": 1}}
    worker = Process(named("duetime-sqlite"), "work", arguments, folder=tmp_path)
    try:
        worker.said()
        # One that did not wait would have begun by now.
        time.sleep(0.2)
        let_go = time.time()
        worker.go()
        assert worker.said()["began"] >= let_go
    finally:
        worker.stop()
