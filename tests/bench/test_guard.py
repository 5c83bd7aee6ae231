from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmarks import guard
from benchmarks.guard import BASELINE, BUSY, GROSS, IDLE, STORES, Change, Shares, compare
from benchmarks.processes import Watch, counting_processor

THEN = {"sqlite: drain": 0.5, "postgres: drain": 0.4}


@pytest.fixture
def baseline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps(THEN))
    monkeypatch.setattr(guard, "BASELINE", path)
    return path


def guarded(monkeypatch: pytest.MonkeyPatch, shares: Shares, *options: str) -> Result:
    """Run the command as if these shares had been measured."""
    monkeypatch.setattr(
        guard, "measure", lambda store, _: {name: s for name, s in shares.items() if name.startswith(store)}
    )
    return CliRunner().invoke(guard.main, options)


def times(factor: float) -> dict[str, float]:
    return {name: share * factor for name, share in THEN.items()}


def test_each_committed_share_is_of_a_figure_that_is_measured() -> None:
    measured = {
        f"{store}: {figure.title}"
        for store in STORES
        for measure, keys in {**BUSY, **IDLE}.items()
        for figure in measure.figures(store)
        if figure.key in keys
    }
    committed = set(json.loads(BASELINE.read_text()))
    assert committed <= measured
    rates = {name for name in measured if "enqueue" in name or "drain" in name}
    assert {name for name in rates if not name.startswith("mariadb")} <= committed


def test_figures_without_a_share_are_added_and_the_others_stay(
    monkeypatch: pytest.MonkeyPatch, baseline: Path
) -> None:
    assert guarded(monkeypatch, times(2) | {"sqlite: idle": 0.7}, "--add").exit_code == 0
    assert json.loads(baseline.read_text()) == {**THEN, "sqlite: idle": 0.7}


def test_a_figure_that_was_never_measured_has_lost_nothing() -> None:
    assert [change.gross for change in compare({"a": 0.1}, {"b": 0.5})] == [False]
    assert "new" in str(Change("a", 0.1, None))


def test_a_loss_is_shown_and_a_gross_one_fails(monkeypatch: pytest.MonkeyPatch, baseline: Path) -> None:
    small = guarded(monkeypatch, times(GROSS + 0.01))
    assert (small.exit_code, small.output.count("-39%"), small.output.count("LOST")) == (0, 2, 0)
    gross = guarded(monkeypatch, times(1) | {"sqlite: drain": THEN["sqlite: drain"] * (GROSS - 0.01)})
    assert (gross.exit_code, gross.output.count("+0%"), gross.output.count("LOST")) == (1, 1, 1)
    assert json.loads(baseline.read_text()) == THEN


def test_a_gross_loss_that_is_meant_becomes_the_baseline(
    monkeypatch: pytest.MonkeyPatch, baseline: Path
) -> None:
    assert guarded(monkeypatch, times(0.1), "--renew").exit_code == 0
    assert json.loads(baseline.read_text()) == pytest.approx(times(0.1))


def test_processor_time_is_counted_where_that_is_asked_for_and_the_wall_clock_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "process_time", iter([10.0, 11.0]).__next__)
    monkeypatch.setattr(time, "perf_counter", iter([10.0, 15.0]).__next__)
    with counting_processor(None):
        assert Watch().seconds() == 1
    assert Watch().seconds() == 5
