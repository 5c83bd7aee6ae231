from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from benchmarks import drawing
from benchmarks.peers import plots, table
from benchmarks.peers.cells import Cell, Outcome
from benchmarks.peers.runner import LIMIT
from benchmarks.peers.sheet import Sheet, medians, number, sheet
from benchmarks.peers.systems import SYSTEMS
from benchmarks.peers.workloads import WORKLOADS

SVG = "{http://www.w3.org/2000/svg}"


def drains(**rates: float) -> list[tuple[Cell, Outcome]]:
    return [
        (
            Cell(engine="sqlite", system=system.replace("_", "-"), workload="drain", variant="one"),
            Outcome(figures={"rate": rate}),
        )
        for system, rate in rates.items()
    ]


def sheet_of(outcomes: list[tuple[Cell, Outcome]], workload: str = "drain") -> Sheet:
    return sheet(medians(outcomes), engine="sqlite", workload=WORKLOADS[workload], systems=SYSTEMS)


def drawn(found: Sheet, *, title: str) -> ET.Element:
    return ET.fromstring(plots.svg(found, title=title))  # noqa: S314 - our own text


def test_the_best_system_comes_first_and_the_limit_last() -> None:
    found = sheet_of(drains(huey=200.0, duetime_sqlite=300.0, limit=900.0))
    assert [row.title for row in found.rows] == ["Duetime", "Huey", "limit"]
    assert found.best(0) == 300.0


def test_who_is_early_is_not_the_best() -> None:
    late = {"huey": -100.5, "duetime-sqlite": 1.0, "apscheduler3": 2.0}
    found = sheet_of(
        [
            (
                Cell(engine="sqlite", system=system, workload="lateness", variant="spread"),
                Outcome(figures={"p50": p50}),
            )
            for system, p50 in late.items()
        ],
        "lateness",
    )
    assert [row.title for row in found.rows] == ["Duetime", "APScheduler 3, in process", "Huey"]
    assert found.best(0) == 1.0
    assert number(-100.5) == "-100"


def test_the_median_of_all_rounds_counts() -> None:
    cell = Cell(engine="sqlite", system="huey", workload="drain", variant="one")
    rounds = [(cell, Outcome(figures={"rate": rate})) for rate in (1.0, 9.0, 2.0)]
    assert sheet_of(rounds).rows[0].values == (2.0,)


def test_a_column_that_nobody_has_a_figure_for_is_left_out() -> None:
    assert [column.title for column in sheet_of(drains(huey=1.0)).columns] == ["one process"]


def test_what_went_wrong_stands_in_the_notes() -> None:
    cell = Cell(engine="sqlite", system="huey", workload="lateness", variant="spread")
    outcome = Outcome(figures={"p50": 3.0}, wrong={"early": 1200}, note="cut")
    assert sheet_of([(cell, outcome)], "lateness").rows[0].notes == "1,200 early, cut"


def test_a_lack_names_the_way_that_is_lacking() -> None:
    single = Cell(engine="sqlite", system="huey", workload="enqueue", variant="single")
    bulk = Cell(engine="sqlite", system="huey", workload="enqueue", variant="bulk")
    ours = Cell(engine="sqlite", system="duetime-sqlite", workload="enqueue", variant="bulk")
    rate = Outcome(figures={"rate": 5.0})
    found = sheet_of([(single, rate), (bulk, Outcome(lacks="no bulk call")), (ours, rate)], "enqueue")
    huey = next(row for row in found.rows if row.title == "Huey")
    assert huey.values == (5.0, None)
    assert huey.notes == "1,000 a call: no bulk call"


@pytest.mark.parametrize(
    ("key", "empty", "filled", "worse"), [("drain", 100.0, 50.0, 2.0), ("start", 100.0, 50.0, 0.5)]
)
def test_a_filled_database_is_shown_as_times_worse_than_an_empty_one(
    key: str, empty: float, filled: float, worse: float
) -> None:
    before = {
        "drain": ("drain", "one", "rate"),
        "start": ("start", "idle", "p50"),
    }[key]
    outcomes = [
        (Cell(engine="sqlite", system="huey", workload=before[0], variant=before[1]), {before[2]: empty}),
        (Cell(engine="sqlite", system="huey", workload="filled", variant="future"), {key: filled}),
    ]
    found = sheet_of([(cell, Outcome(figures=figures)) for cell, figures in outcomes], "filled")
    assert found.rows[0].worse == (worse,)
    assert f"({worse:.2f} x)" in table.markdown(found)


def test_a_table_has_as_many_cells_in_each_line() -> None:
    lines = table.markdown(sheet_of(drains(huey=200.0, duetime_sqlite=300.0, limit=900.0))).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert "**300**" in lines[2]
    assert "**" not in lines[4]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (0.0234, "0.023"), (0.5, "0.50"), (3.14159, "3.14"), (42.42, "42.4"), (12345.6, "12,346")],
)
def test_numbers_have_three_digits(value: float, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize("workload", list(WORKLOADS))
def test_a_plot_is_well_formed_and_shows_every_system(workload: str) -> None:
    about = WORKLOADS[workload]
    keys = {column.variant: {} for column in about.columns}  # type: dict[str, dict[str, float]]
    for n, column in enumerate(about.columns):
        keys[column.variant][column.key] = 10.0**n
    cells = [
        (Cell(engine="sqlite", system=system, workload=workload, variant=variant), Outcome(figures=figures))
        for system in ("huey", "duetime-sqlite", LIMIT)
        for variant, figures in keys.items()
    ]
    picture = drawn(sheet_of(cells, workload), title="A < B & C")
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    plotted = sum(column.plotted for column in about.columns)
    assert texts[0] == "A < B & C"
    assert all(texts.count(name) == plotted for name in ("Huey", "Duetime", "limit"))
    assert len([bar for bar in picture.iter(f"{SVG}rect") if bar.get("class") == "ours"]) == plotted


def test_nothing_of_a_plot_lies_outside_of_it() -> None:
    found = sheet_of(drains(huey=0.5, duetime_sqlite=22_345.0, apscheduler3=0.0, limit=1_000_000.0))
    picture = drawn(found, title="Drain")
    _, _, width, height = map(float, str(picture.get("viewBox")).split())
    for bar in picture.iter(f"{SVG}rect"):
        assert 0 <= float(str(bar.get("x"))) + float(str(bar.get("width"))) <= width
        assert 0 <= float(str(bar.get("y"))) + float(str(bar.get("height"))) <= height
    for text in picture.iter(f"{SVG}text"):
        assert 0 <= float(str(text.get("x"))) <= width
        assert 0 <= float(str(text.get("y"))) <= height


def test_a_system_without_a_figure_has_a_dash_and_no_bar() -> None:
    outcomes = drains(duetime_sqlite=5.0)
    outcomes += [
        (Cell(engine="sqlite", system="huey", workload="drain", variant="one"), Outcome(failed="no answer"))
    ]
    picture = drawn(sheet_of(outcomes), title="Drain")
    assert [text.text for text in picture.iter(f"{SVG}text") if text.get("class") == "none"] == ["-"]
    assert not [bar for bar in picture.iter(f"{SVG}rect") if bar.get("class") == "peer"]


def test_an_axis_begins_at_zero_unless_figures_lie_far_apart() -> None:
    near = drawing.scale([50.0, 100.0], 200)
    assert (near(0.0), near(50.0), near(100.0)) == (0.0, 100.0, 200.0)
    assert near.ticks()[0] == 0.0


def test_powers_of_ten_tell_figures_apart_that_lie_far_apart() -> None:
    far = drawing.scale([0.4, 5_000.0], 200)
    assert far.logarithmic
    assert 0 < far(0.4) < far(40.0) < far(4_000.0) <= 200
    assert far.ticks() == pytest.approx([0.1, 1, 10, 100, 1_000, 10_000])


@pytest.mark.parametrize("values", [[0.0], [0.0, 0.0], [3.0], [1e-9, 1e9]])
def test_any_figures_have_an_axis(values: list[float]) -> None:
    axis = drawing.scale(values, 200)
    assert all(0 <= axis(value) <= 200.001 for value in [*values, *axis.ticks()])
    assert len(axis.ticks()) <= 12
