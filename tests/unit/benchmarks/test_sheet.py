from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from benchmarks.peers import sheet
from benchmarks.peers.catalogue import SYSTEMS
from benchmarks.peers.cells import Cell, Outcome
from benchmarks.peers.runner import LIMIT
from benchmarks.peers.sheet import Sheet, gathered, medians, number
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
    return gathered(medians(outcomes), engine="sqlite", workload=WORKLOADS[workload], systems=SYSTEMS)


def drawn(found: Sheet, *, title: str) -> ET.Element:
    return ET.fromstring(sheet.svg(found, title=title))  # noqa: S314 - our own text


def test_the_best_system_comes_first_and_the_driver_alone_last() -> None:
    found = sheet_of(drains(huey=200.0, duetime_sqlite=300.0, limit=900.0))
    assert [row.title for row in found.rows] == ["Duetime", "Huey", "driver alone"]
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


def test_what_went_wrong_stands_in_the_notes() -> None:
    cell = Cell(engine="sqlite", system="huey", workload="lateness", variant="spread")
    outcome = Outcome(figures={"p50": 3.0}, wrong={"early": 1200}, note="cut")
    assert sheet_of([(cell, outcome)], "lateness").rows[0].notes == "1,200 early, cut"


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
    assert f"({worse:.2f} x)" in sheet.markdown(found)


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
    assert all(texts.count(name) == plotted for name in ("Huey", "Duetime", "driver alone"))
    assert len([bar for bar in picture.iter(f"{SVG}rect") if bar.get("class") == "ours"]) == plotted
