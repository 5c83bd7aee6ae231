from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.peers import runner
from benchmarks.peers.cells import Results
from benchmarks.peers.sizes import TINY
from benchmarks.peers.systems import named

SMALL = replace(TINY, settle=0.0, future=50)


def test_our_own_cells_are_measured_and_nothing_is_wrong_with_them(tmp_path: Path) -> None:
    system = replace(named("duetime-sqlite"), widths=(100,))
    request = runner.Request(engines=["sqlite"], systems=[system], workloads=["filled"], sizes=SMALL)
    results = Results(tmp_path)
    assert runner.run(request, results, seed=1) == []
    outcomes = {cell.system: outcome for cell, outcome in results}
    assert all(value > 0 for value in outcomes[system.name].figures.values())
    assert outcomes[system.name].wrong == {}
