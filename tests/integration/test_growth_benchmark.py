"""The growth benchmark runs to its end, at sizes that say nothing."""

from __future__ import annotations

import pytest

from benchmarks.growth import report, runner
from benchmarks.growth.sizes import TINY


@pytest.mark.timeout(180)
@pytest.mark.usefixtures("postgres")
def test_every_curve_is_measured_and_reported() -> None:
    results = runner.run(["postgres"], runner.CURVES, TINY)
    measured = results["engines"]["postgres"]
    assert "broken" not in measured
    [workers], [crowd], [stored] = measured["workers"], measured["crowds"], measured["stored"]
    assert workers["drain"] > 0
    assert workers["statements_per_job"] > 0
    assert crowd["connections"] > workers["connections"]
    assert stored["pages_claim"] > 0
    assert stored["drain_times"] > 0
    assert "### Schedules, PostgreSQL" in report.tables(results)


@pytest.mark.timeout(120)
def test_without_a_server_nothing_is_said_about_one() -> None:
    results = runner.run(["sqlite"], ["workers", "crowds"], TINY)
    measured = results["engines"]["sqlite"]
    assert measured["workers"][0]["drain"] > 0
    assert "crowds" not in measured
    assert "statements per job" not in report.tables(results)
