"""What the curves show: their axes, their lines and their tables; nothing is measured here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.growth.plots import Line, Plot
from benchmarks.peers.sheet import number

_ENGINES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of a point."""

    key: str
    title: str
    unit: str = ""

    @property
    def head(self) -> str:
        """How it stands over a table."""
        return f"{self.title}, {self.unit}" if self.unit else self.title


@dataclass(frozen=True, slots=True)
class Chart:
    """Figures that are drawn together, over the same axis."""

    name: str
    title: str
    unit: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve: what it is over, what its table shows, and what is drawn of it."""

    name: str
    title: str
    axis: Column
    columns: tuple[Column, ...]
    charts: tuple[Chart, ...]


_SERVER = (
    Column("statements_per_job", "statements per job"),
    Column("statements_per_second", "statements per second"),
    Column("commits_per_job", "commits per job"),
    Column("server_us", "server per job", "us"),
    Column("wal_per_job", "log per job", "bytes"),
)
_IDLE = (
    Column("idle_statements", "idle statements per second"),
    Column("idle_server", "idle server", "% of a core"),
    Column("connections", "connections"),
)
CURVES = (
    Curve(
        "workers",
        "Worker processes",
        Column("workers", "worker processes"),
        (
            Column("drain", "no-op jobs", "per s"),
            Column("drain_waiting", "jobs that wait 5 ms", "per s"),
            Column("late_p50", "late, p50", "ms"),
            Column("late_p99", "late, p99", "ms"),
            Column("start_p50", "start, p50", "ms"),
            Column("worker_us", "workers per job", "us"),
            *_SERVER,
            *_IDLE,
        ),
        (
            Chart(
                "rate",
                "Jobs drained",
                "per second",
                (Column("drain", "no-op jobs"), Column("drain_waiting", "jobs that wait 5 ms")),
            ),
            Chart(
                "late",
                "Lateness and start",
                "ms",
                (
                    Column("late_p50", "late, p50"),
                    Column("late_p99", "late, p99"),
                    Column("start_p50", "start in an idle fleet, p50"),
                ),
            ),
        ),
    ),
    Curve(
        "crowds",
        "Workers that share processes",
        Column("workers", "workers"),
        (*_IDLE, Column("statements_per_event", "statements for one job given to the idle fleet")),
        (
            Chart(
                "asked",
                "What the database is asked",
                "statements",
                (
                    Column("idle_statements", "idle, per second"),
                    Column("statements_per_event", "for one job"),
                ),
            ),
        ),
    ),
    Curve(
        "stored",
        "Jobs stored for later",
        Column("stored", "jobs stored for later"),
        (
            Column("drain", "no-op jobs", "per s"),
            Column("drain_times", "x empty"),
            Column("start_p50", "start, p50", "ms"),
            Column("start_p50_times", "x empty"),
            Column("enqueue", "single enqueues", "per s"),
            Column("enqueue_times", "x empty"),
            Column("bulk", "enqueues in bulk", "per s"),
            Column("bulk_times", "x empty"),
            Column("pages_enqueue", "pages per enqueue"),
            Column("pages_claim", "pages per job claimed"),
            Column("pages_settle", "pages per job settled"),
            Column("pages_look", "pages per look ahead"),
        ),
        (
            Chart(
                "rate", "Rates", "per second", (Column("drain", "drained"), Column("bulk", "stored in bulk"))
            ),
            Chart(
                "pages",
                "Pages of the database touched",
                "per job",
                (
                    Column("pages_enqueue", "enqueue"),
                    Column("pages_claim", "claim"),
                    Column("pages_settle", "settle"),
                ),
            ),
        ),
    ),
    Curve(
        "schedules",
        "Schedules",
        Column("schedules", "schedules"),
        (
            Column("steady_rate", "fixed rate", "per s"),
            Column("steady_p50", "late, p50", "ms"),
            Column("steady_p99", "late, p99", "ms"),
            Column("steady_worker_us", "worker per job", "us"),
            Column("each_rate", "fixed period", "per s"),
            Column("each_p50", "late, p50", "ms"),
            Column("each_p99", "late, p99", "ms"),
            Column("each_worker_us", "worker per job", "us"),
            Column("each_statements_per_job", "statements per job"),
        ),
        (
            Chart(
                "late",
                "Lateness",
                "ms",
                (
                    Column("steady_p50", "fixed rate, p50"),
                    Column("steady_p99", "fixed rate, p99"),
                    Column("each_p50", "fixed period, p50"),
                    Column("each_p99", "fixed period, p99"),
                ),
            ),
        ),
    ),
)


def title(engine: str) -> str:
    """Return how an engine is called."""
    return _ENGINES[engine]


def plots(engine: str, measured: Mapping[str, Any]) -> Iterator[tuple[str, Plot]]:
    """Yield what can be drawn of an engine's curves, by the name of the picture."""
    for curve in CURVES:
        points: Sequence[Mapping[str, float]] = measured.get(curve.name, ())
        for chart in curve.charts:
            lines = [line for column in chart.columns if (line := _line(points, curve.axis.key, column))]
            if lines:
                plot = Plot(
                    title=f"{chart.title}, {_ENGINES[engine]}",
                    x=curve.axis.title,
                    y=chart.unit,
                    lines=tuple(lines),
                )
                yield f"{curve.name}-{chart.name}-{engine}", plot


def _line(points: Sequence[Mapping[str, float]], axis: str, column: Column) -> Line | None:
    found = tuple((point[axis], point[column.key]) for point in points if column.key in point)
    return Line(column.title, found) if len(found) > 1 else None


def table(curve: Curve, points: Sequence[Mapping[str, float]]) -> str:
    """Return a table in Markdown, without columns that nothing was measured for."""
    columns = [column for column in curve.columns if any(column.key in point for point in points)]
    rows = [
        [curve.axis.title, *(column.head for column in columns)],
        ["---:"] * (len(columns) + 1),
        *(
            [f"{point[curve.axis.key]:,.0f}", *(_cell(point.get(column.key)) for column in columns)]
            for point in points
        ),
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cell(value: float | None) -> str:
    return "" if value is None else number(value)
