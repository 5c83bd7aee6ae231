from __future__ import annotations

from pathlib import Path

from benchmarks.peers import report
from benchmarks.peers.catalogue import SYSTEMS
from benchmarks.peers.cells import Cell, Outcome, Results
from benchmarks.peers.sizes import TINY
from benchmarks.peers.workloads import WORKLOADS

ROOT = Path(__file__).resolve().parents[3]


def measured(folder: Path) -> Results:
    results = Results(folder)
    results.note({"machine": {"processor": "A chip", "cores": 2, "python": "3.11"}, "sqlite": "SQLite 3.40"})
    cell = Cell(engine="sqlite", system="huey", workload="start", variant="idle")
    results.save(cell, Outcome(figures={"p50": 12.0, "p99": 20.0}, wrong={"missing": 2}))
    return results


def page_of(folder: Path) -> str:
    return report.page(report.Measured.now(measured(folder), TINY))


def test_the_page_shows_plots_tables_and_what_went_wrong(tmp_path: Path) -> None:
    text = page_of(tmp_path)
    assert "![Enqueue to start, SQLite](peers/start-sqlite.svg)" in text
    assert "| Huey | **12.0** | **20.0** | 2 missing |" in text
    assert "A chip" in text
    assert "{{" not in text


def test_the_page_names_every_system_and_every_workload(tmp_path: Path) -> None:
    text = page_of(tmp_path)
    assert all(system.settings in text for system in SYSTEMS)
    assert all(f"`{name}`" in text and workload.title in text for name, workload in WORKLOADS.items())


def test_the_page_begins_with_duetime_next_to_the_best_of_the_others(tmp_path: Path) -> None:
    results = measured(tmp_path)
    for system, p50 in (("duetime-sqlite", 2.5), ("apscheduler3", 14.0), ("limit", 1.0)):
        cell = Cell(engine="sqlite", system=system, workload="start", variant="idle")
        results.save(cell, Outcome(figures={"p50": p50}))
    summary = report.page(report.Measured.now(results, TINY)).partition("\n## ")[0]
    assert "| enqueue to start, p50, ms | **2.50** (Huey 12.0) |" in summary


def test_the_published_page_is_made_from_the_published_figures() -> None:
    folder = ROOT / "docs" / "reference"
    whole = report.page(report.Measured.published(folder))
    assert whole == (folder / "peers.md").read_text(encoding="utf-8"), (
        "write it anew: python -m benchmarks.peers --report --publish"
    )
