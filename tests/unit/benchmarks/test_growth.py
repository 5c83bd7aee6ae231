"""What the growth benchmark makes of its measurements, without measuring anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.growth import report, runner
from benchmarks.growth.engines import Calls, Load, Names, skeleton
from benchmarks.growth.fleets import Notes, Pen
from benchmarks.ledger import Entry, WrongRun, steady_rate
from duetime.stores.sql.driver import Statement

ROOT = Path(__file__).parents[3]
MACHINE = {"processor": "p", "system": "Linux", "cores": 2, "python": "3.11"}


def results(**curves_of_postgres: list[dict[str, float]]) -> dict[str, Any]:
    return {"machine": MACHINE, "engines": {"postgres": {"facts": "PostgreSQL 15", **curves_of_postgres}}}


def crowds() -> list[dict[str, float]]:
    keys = ("idle_statements", "idle_server", "connections", "statements_per_event")
    return [{"workers": n, **dict.fromkeys(keys, 2.0 * n)} for n in (4, 16, 64)]


def load(**values: Any) -> Load:
    return Load(**{"seconds": 0.0, "commits": 0, "wal": 0, **values})


def test_a_load_is_what_came_between_two_readings() -> None:
    before = load(seconds=1.0, commits=10, wal=100, used={1: 1.0, 2: 5.0}, calls={"claim": Calls(2, 20)})
    after = load(
        seconds=4.0,
        commits=15,
        wal=400,
        used={1: 1.5, 3: 0.25},
        calls={"claim": Calls(4, 50), "settle": Calls(1, 3)},
    )
    found = after.since(before)
    assert (found.seconds, found.commits, found.wal, found.processor) == (3.0, 5, 300, 0.75)
    assert found.statements == 3
    assert found.pages("claim") == 15
    assert found.pages("claim", "settle") == 11
    assert found.pages("never asked") == 0


def test_a_filled_store_is_compared_with_the_empty_one_of_its_own_turn() -> None:
    empty = [{"drain": rate, "enqueue": rate, "bulk": rate, "start_p50": 2.0} for rate in (100.0, 10.0, 40.0)]
    full = [{"drain": rate, "enqueue": rate, "bulk": rate, "start_p50": 3.0} for rate in (50.0, 10.0, 10.0)]
    found = runner.multiples(list(zip(empty, full, strict=True)))
    assert found == {"drain_times": 2.0, "enqueue_times": 2.0, "bulk_times": 2.0, "start_p50_times": 1.5}


def test_a_statement_is_known_by_its_shape_where_the_server_has_left_constants_out() -> None:
    claim = "UPDATE jobs SET state = 'running', note = NULL\nWHERE due < extract(epoch FROM now()) * 1000000 AND id = $1"
    names = Names([Statement("claim", claim, ("id",))])
    shown = "UPDATE jobs SET state = $2, note = $3\nWHERE due < extract($4 FROM now()) * $5 AND id = $1"
    assert names.of(shown) == "claim"
    assert names.of("BEGIN ISOLATION LEVEL READ COMMITTED") == "begin"
    assert names.of("CREATE TABLE x ()") == "other"
    assert names.calls([(shown, 2, 5), (shown, 1, 1)]) == {"claim": Calls(3, 6)}
    assert skeleton("a IS NOT NULL") != skeleton("a IS NOT 1")


def test_the_steady_rate_leaves_out_how_it_began_and_ended() -> None:
    middle = [10 + n / 100 for n in range(81)]
    assert steady_rate([0.0] * 10 + middle + [100.0] * 10) == pytest.approx(100, rel=0.05)


def test_notes_are_read_when_all_have_come_and_forgotten_between_measures(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes")
    pen = Pen(notes.path)
    pen.note(1, 5)
    assert [(entry.number, entry.due_at) for entry in notes.wait(1, within=1)] == [(1, 5)]
    with pytest.raises(WrongRun, match="1 of 2 jobs ran"):
        notes.wait(2, within=0)
    notes.clear()
    pen.note(2, 6)
    assert [entry.number for entry in notes.wait(1, within=1)] == [2]


def test_schedules_come_evenly_and_those_that_would_come_too_late_on_another_day() -> None:
    rules = runner.spread_rules(4, 1_000_000, first=10_000_000, until=10_500_000)
    assert runner.occurrences(rules, until=10_500_000) == [
        (0, 10_000_000),
        (1, 10_250_000),
        (2, 10_500_000),
    ]
    rules = runner.spread_rules(2, 1_000_000, first=10_000_000, until=11_999_999)
    assert len(runner.occurrences(rules, until=11_999_999)) == 4


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([Entry(0, 10, 11)], "2 occurrences were due, 1 of them ran, 1 jobs"),
        ([Entry(0, 10, 11), Entry(0, 10, 12), Entry(1, 20, 21)], "2 of them ran, 3 jobs"),
        ([Entry(0, 10, 11), Entry(1, 20, 19)], "1 jobs started before they were due"),
    ],
)
def test_an_occurrence_that_is_missing_doubled_or_early_is_told(found: list[Entry], message: str) -> None:
    with pytest.raises(WrongRun, match=message):
        runner.all_started(found, [(0, 10), (1, 20)])


def test_the_page_has_pictures_tables_the_model_and_what_was_broken_off(tmp_path: Path) -> None:
    drains = [{"workers": n, "drain": 9.0 * n, "server_us": 50.0, "wal_per_job": 700.0} for n in (1, 2)]
    whole = results(workers=drains, crowds=crowds())
    whole["engines"]["postgres"]["broken"] = {"stored": "2 of 3 jobs ran"}
    written = {path.name for path in report.write(whole, tmp_path)}
    assert written == {"growth.md", "workers-rate-postgres.svg", "crowds-asked-postgres.svg"}
    text = (tmp_path / "growth.md").read_text()
    for part in (
        "![Jobs drained, PostgreSQL](growth/workers-rate-postgres.svg)",
        "| 2 | 18.0 |",
        "| connections | 2 for each worker |",
        "| 1,000 | 2,000 |",
        "broken off: 2 of 3 jobs ran",
    ):
        assert part in text, part
    assert "{{" not in text


def test_the_published_page_is_made_from_its_template() -> None:
    published = (ROOT / "docs/reference/growth.md").read_text()
    blank = report.page({"machine": MACHINE, "engines": {}})
    assert published.partition("## What was measured")[0] == blank.partition("## What was measured")[0]
