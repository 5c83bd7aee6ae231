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


def test_the_page_shows_plots_tables_and_what_went_wrong(tmp_path: Path) -> None:
    text = report.page(measured(tmp_path), TINY)
    assert "![Enqueue to start, SQLite](peers/start-sqlite.svg)" in text
    assert "| Huey | **12.0** | **20.0** | 2 missing |" in text
    assert "A chip" in text
    assert "{{" not in text


def test_the_page_names_every_system_and_every_workload(tmp_path: Path) -> None:
    text = report.page(Results(tmp_path), TINY)
    assert all(system.settings in text for system in SYSTEMS)
    assert all(f"`{name}`" in text and workload.title in text for name, workload in WORKLOADS.items())


def test_without_outcomes_the_text_is_written_around_the_figures_of_before(tmp_path: Path) -> None:
    page = tmp_path / "peers.md"
    page.write_text("Old text.\n\n## What we have seen\n\nOld figures.\n")
    assert list(report.write(Results(tmp_path / "none"), TINY, tmp_path)) == [page]
    assert page.read_text().startswith("# Duetime next to other schedulers")
    assert page.read_text().endswith("\n## What we have seen\n\nOld figures.\n")


def test_the_published_page_has_the_text_of_today() -> None:
    published = (ROOT / "docs" / "reference" / "peers.md").read_text(encoding="utf-8")
    fixed = report.page(Results(ROOT / "none"), TINY).partition("\n## What we have seen\n")[0]
    assert published.startswith(fixed), "write it anew: python -m benchmarks.peers --report --publish"
