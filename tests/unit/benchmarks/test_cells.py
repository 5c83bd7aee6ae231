from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.peers import environments, runner
from benchmarks.peers.cells import Cell, Outcome, Results
from benchmarks.peers.databases import opened
from benchmarks.peers.sizes import QUICK, TINY
from benchmarks.peers.systems import ENGINES, SYSTEMS, System, named
from benchmarks.peers.workloads import WORKLOADS
from benchmarks.peers.workloads.base import Bench

CELL = Cell(engine="sqlite", system="huey", workload="drain", variant="one")


@pytest.fixture(autouse=True)
def no_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install nothing: no cell of these tests starts a process."""
    monkeypatch.setattr(environments, "python", lambda system: Path("python"))
    monkeypatch.setattr(environments, "versions", lambda system: {"huey": "3"})


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


def test_a_write_that_is_broken_off_leaves_the_outcome_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken_off(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    Results(tmp_path).save(CELL, Outcome(note="before"))
    monkeypatch.setattr(Path, "replace", broken_off)
    with pytest.raises(KeyboardInterrupt):
        Results(tmp_path).save(CELL, Outcome(note="after"))
    assert [outcome.note for _, outcome in Results(tmp_path)] == ["before"]


def test_rounds_and_variants_have_files_of_their_own() -> None:
    request = runner.Request(engines=["sqlite"], systems=SYSTEMS, workloads=tuple(WORKLOADS), sizes=TINY)
    found = runner.cells(request, "sqlite")
    assert len({cell.file for cell in found}) == len(found)


def test_facts_of_several_runs_are_kept(tmp_path: Path) -> None:
    Results(tmp_path).note({"sqlite": "3"})
    Results(tmp_path).note({"postgres": "15"})
    assert Results(tmp_path).facts() == {"sqlite": "3", "postgres": "15"}


def test_the_limits_are_measured_beside_the_systems_of_their_engine_only() -> None:
    request = runner.Request(engines=["sqlite"], systems=[named("huey")], workloads=["drain"], sizes=TINY)
    assert [cell.system for cell in runner.cells(request, "sqlite")] == ["huey", "huey", runner.LIMIT]
    assert runner.cells(request, "postgres") == []


def test_a_system_that_no_second_process_can_help_has_no_such_cell() -> None:
    system = named("apscheduler3")
    request = runner.Request(engines=["sqlite"], systems=[system], workloads=["drain"], sizes=TINY)
    ours = [cell for cell in runner.cells(request, "sqlite") if cell.system == system.name]
    assert [cell.variant for cell in ours] == ["one"]


def test_the_quick_run_of_everything_ends_in_half_an_hour() -> None:
    request = runner.Request(engines=ENGINES, systems=SYSTEMS, workloads=tuple(WORKLOADS), sizes=QUICK)
    cells = [cell for engine in request.engines for cell in runner.cells(request, engine)]
    # What cells take in fact is a fifth less.
    assert sum(runner.estimate(request, cell) for cell in cells) < 33 * 60


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

    def estimate(self, system: System, sizes: object, variant: str) -> float:
        return 1.0

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


def test_only_the_error_is_kept_of_what_a_process_said_last() -> None:
    words = "Traceback:\n  File x.py\n  | sqlalchemy.exc.TimeoutError: pool limit\n  +-----\n"
    assert runner.brief(words) == "sqlalchemy.exc.TimeoutError: pool limit"
    assert runner.brief("Killed") == "no answer"


def test_each_cell_on_sqlite_has_a_file_of_its_own(tmp_path: Path) -> None:
    with opened("sqlite") as databases, databases.empty(tmp_path) as url:
        assert url == f"sqlite:///{tmp_path}/peers.db"
