from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.peers import peer, runner
from benchmarks.peers.catalogue import SYSTEMS, System, named
from benchmarks.peers.cells import Cell, Outcome, Results
from benchmarks.peers.sizes import TINY
from benchmarks.peers.workloads import WORKLOADS, Bench

CELL = Cell(engine="sqlite", system="huey", workload="drain", variant="one")


@pytest.fixture(autouse=True)
def no_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install nothing: no cell of these tests starts a process."""
    monkeypatch.setattr(peer, "python", lambda system: Path("python"))
    monkeypatch.setattr(peer, "versions", lambda system: {"huey": "3"})


def test_an_outcome_is_read_as_it_was_saved(tmp_path: Path) -> None:
    outcome = Outcome(figures={"rate": 12.5}, wrong={"early": 3}, note="cut", seconds=1.5)
    Results(tmp_path).save(CELL, outcome)
    assert list(Results(tmp_path)) == [(CELL, outcome)]


def test_a_cell_is_finished_once_it_is_saved(tmp_path: Path) -> None:
    results = Results(tmp_path)
    assert not results.finished(CELL)
    results.save(CELL, Outcome(lacks="no bulk call"))
    assert results.finished(CELL)
    results.forget(CELL)
    assert not results.finished(CELL)


def test_a_cell_that_broke_down_is_not_finished(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.save(CELL, Outcome(failed="no answer"))
    assert not results.finished(CELL)


def test_a_file_that_was_not_written_to_its_end_is_not_an_outcome(tmp_path: Path) -> None:
    (tmp_path / CELL.file).with_suffix(".part").write_text('{"cell": {')
    assert not Results(tmp_path).finished(CELL)
    assert list(Results(tmp_path)) == []


def test_the_limits_are_measured_beside_the_systems_of_their_engine_only() -> None:
    request = runner.Request(engines=["sqlite"], systems=[named("huey")], workloads=["drain"], sizes=TINY)
    assert [cell.system for cell in runner.cells(request, "sqlite")] == ["huey", "huey", runner.LIMIT]
    assert runner.cells(request, "postgres") == []


def test_every_pin_is_exact_and_shared_environments_agree() -> None:
    pins: dict[str, tuple[str, ...]] = {}
    for system in SYSTEMS:
        assert all(pin.count("==") == 1 for pin in system.requirements)
        assert pins.setdefault(system.adapter, system.requirements) == system.requirements


class Once:
    """A workload that tells how often it was run."""

    name = "once"
    columns = ()
    bounds = ()

    def __init__(self, outcome: Outcome | None) -> None:
        self.ran = 0
        self._outcome = outcome

    def variants(self, system: System, sizes: object) -> tuple[str, ...]:
        return ("only",)

    def run(self, bench: Bench, variant: str) -> Outcome:
        self.ran += 1
        if self._outcome is None:
            raise ValueError("it broke")
        return self._outcome


def once(monkeypatch: pytest.MonkeyPatch, outcome: Outcome | None) -> Once:
    workload = Once(outcome)
    monkeypatch.setitem(WORKLOADS, "once", workload)
    return workload


def request_of(name: str) -> runner.Request:
    return runner.Request(engines=["sqlite"], systems=[named(name)], workloads=["once"], sizes=TINY)


def test_a_finished_cell_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = once(monkeypatch, Outcome(figures={"rate": 1.0}))
    for _ in range(2):
        assert runner.run(request_of("duetime-sqlite"), Results(tmp_path), seed=1) == []
    assert workload.ran == 1


def test_what_we_do_wrong_fails_the_run_and_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = once(monkeypatch, Outcome(wrong={"early": 2}))
    for _ in range(2):
        failures = runner.run(request_of("duetime-sqlite"), Results(tmp_path), seed=1)
        assert len(failures) == 1
        assert "2 early" in failures[0]
    assert workload.ran == 2


def test_what_a_peer_does_wrong_is_kept_and_fails_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once(monkeypatch, Outcome(wrong={"early": 2}))
    assert runner.run(request_of("huey"), Results(tmp_path), seed=1) == []
    assert [outcome.wrong for _, outcome in Results(tmp_path)] == [{"early": 2}]


def test_a_cell_that_breaks_down_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once(monkeypatch, None)
    failures = runner.run(request_of("duetime-sqlite"), Results(tmp_path), seed=1)
    assert [outcome.failed for _, outcome in Results(tmp_path)] == ["ValueError: it broke"]
    assert len(failures) == 1
