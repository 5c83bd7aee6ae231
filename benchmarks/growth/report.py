"""The outcomes for people: tables on the terminal, and a page with tables and pictures in the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.drawing import Scale, scale, text
from benchmarks.growth.model import Fit, Model, Prediction, Unfit, each, fitted, fleet, once, pairs
from benchmarks.growth.runner import Results
from benchmarks.peers.sheet import number

_WIDTH, _HEIGHT = 760, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 24, 84, 56
_STYLE = """
.page { fill: #ffffff; stroke: #d8dee4 }
text { font-family: system-ui, sans-serif; font-size: 13px; fill: #24292f }
.title { font-size: 17px; font-weight: 600 }
.tick { font-size: 12px; fill: #57606a }
.grid { stroke: #d8dee4 }
.line { fill: none; stroke-width: 2.5 }
.a { stroke: #1a7f5a } .b { stroke: #b35900; stroke-dasharray: 7 4 }
.c { stroke: #3b6fb6; stroke-dasharray: 2 4 } .d { stroke: #8a4fa3; stroke-dasharray: 9 3 2 3 }
circle.a { fill: #1a7f5a } circle.b { fill: #b35900 } circle.c { fill: #3b6fb6 } circle.d { fill: #8a4fa3 }
@media (prefers-color-scheme: dark) {
  .page { fill: #0d1117; stroke: #30363d }
  text { fill: #e6edf3 }
  .tick { fill: #9aa5b1 }
  .grid { stroke: #30363d }
  .a { stroke: #3fb68b } .b { stroke: #e0974a } .c { stroke: #7aa7e8 } .d { stroke: #c08ad8 }
  circle.a { fill: #3fb68b } circle.b { fill: #e0974a } circle.c { fill: #7aa7e8 } circle.d { fill: #c08ad8 }
}
"""
_KINDS = "abcd"
"""Lines differ in colour and in their dashes: colour alone is not seen by everyone."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line, from point to point."""

    title: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A picture: lines over the same axes."""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]


def svg(plot: Plot) -> str:
    """Return the picture."""
    across = scale([x for line in plot.lines for x, _ in line.points], _WIDTH - _LEFT - _RIGHT)
    up = scale([y for line in plot.lines for _, y in line.points], _HEIGHT - _TOP - _BOTTOM)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{escape(plot.title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="page" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{_HEIGHT - 1}" rx="8"/>',
        text(20, 32, f"{plot.title} ({plot.y})", "title"),
        *_grid(plot, across, up),
        *_legend(plot.lines),
    ]
    for kind, line in zip(_KINDS, plot.lines, strict=False):
        lines += _drawn(line, kind, across, up)
    return "\n".join([*lines, "</svg>", ""])


def _grid(plot: Plot, across: Scale, up: Scale) -> Iterator[str]:
    bottom = _HEIGHT - _BOTTOM
    for tick in up.ticks():
        y = bottom - up(tick)
        yield f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}"/>'
        yield text(_LEFT - 10, round(y + 4), _short(tick), "tick", anchor="end")
    # No power of ten is nothing; it is drawn where the axis begins.
    none = across.logarithmic and any(x == 0 for line in plot.lines for x, _ in line.points)
    for tick in across.ticks():
        x = _LEFT + across(tick)
        shown = 0.0 if none and tick == across.low else tick
        yield f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}"/>'
        yield text(x, bottom + 18, _short(shown), "tick", anchor="middle")
    scales = [name for name, each in (("across", across), ("up", up)) if each.logarithmic]
    powers = f"; powers of ten {' and '.join(scales)}" if scales else ""
    yield text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 16, f"{plot.x}{powers}", "tick", anchor="middle")


def _legend(lines: Sequence[Line]) -> Iterator[str]:
    x = float(_LEFT)
    for kind, line in zip(_KINDS, lines, strict=False):
        yield f'<path class="line {kind}" d="M{x:.1f} 58 h28"/>'
        yield text(x + 34, 62, line.title, "legend")
        x += 54 + 7.2 * len(line.title)


def _drawn(line: Line, kind: str, across: Scale, up: Scale) -> Iterator[str]:
    places = [(_LEFT + across(x), _HEIGHT - _BOTTOM - up(y)) for x, y in line.points]
    path = " L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    yield f'<path class="line {kind}" d="M{path}"/>'
    for x, y in places:
        yield f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'


def _short(value: float) -> str:
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


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


_TEMPLATE = Path(__file__).with_name("page.md")
_PAGE = "growth.md"
_FOLDER = "growth"
_NONE = "No figures are published yet; `make bench-growth` prints them.\n"
_NO_MODEL = (
    "No figures are published yet; the model is fitted to PostgreSQL's curves over workers and crowds.\n"
)
_FLEETS = (1, 16, 100, 300, 1_000)
_CORES = (2, 4, 8, 16)
_TERMS = {each: "for each worker", fleet: "for the fleet", pairs: "for each pair of workers", once: "once"}
_FITS = (
    ("idle_statements", "idle statements per second"),
    ("idle_server", "cores kept busy by an idle fleet"),
    ("connections", "connections"),
    ("answers", "statements for one job given to an idle fleet"),
)
_CONNECTIONS = (100, 500, 2_000)


def tables(results: Results) -> str:
    """Return all tables and the model, for a terminal."""
    return "\n".join((_measured(results), *_sections(results, pictures=False), _model(results)))


def write(results: Results, folder: Path) -> Iterator[Path]:
    """Write the page and its pictures into a folder."""
    for engine, measured in results["engines"].items():
        for name, plot in plots(engine, measured):
            picture = folder / _FOLDER / f"{name}.svg"
            picture.parent.mkdir(parents=True, exist_ok=True)
            picture.write_text(svg(plot), encoding="utf-8")
            yield picture
    (folder / _PAGE).write_text(page(results), encoding="utf-8")
    yield folder / _PAGE


def page(results: Results) -> str:
    """Return the page's text; also without results, when it only says how they come about."""
    parts = {
        "{{measured}}": _measured(results) if results["engines"] else _NONE,
        "{{curves}}": "".join(_sections(results, pictures=True)),
        "{{model}}": _model(results) or _NO_MODEL,
    }
    whole = _TEMPLATE.read_text(encoding="utf-8")
    for mark, part in parts.items():
        whole = whole.replace(f"{mark}\n", part)
    return whole.rstrip("\n") + "\n"


def _measured(results: Results) -> str:
    machine: Mapping[str, Any] = results["machine"]
    where = (
        f"{machine['processor']}, {machine['system']}, {machine['cores']} cores, Python {machine['python']}"
    )
    facts = "; ".join(measured["facts"] for measured in results["engines"].values())
    return f"{where}; {facts}.\n"


def _sections(results: Results, *, pictures: bool) -> Iterator[str]:
    for engine, measured in results["engines"].items():
        drawn = dict(plots(engine, measured)) if pictures else {}
        for curve in CURVES:
            points = measured.get(curve.name)
            if not points:
                continue
            yield f"\n### {curve.title}, {title(engine)}\n\n"
            for name, plot in drawn.items():
                if name.startswith(f"{curve.name}-"):
                    yield f"![{plot.title}]({_FOLDER}/{name}.svg)\n\n"
            yield table(curve, points)
        for curve, why in measured.get("broken", {}).items():
            yield f"\nThe curve over {curve} was broken off: {why}.\n"


def _model(results: Results) -> str:
    measured = results["engines"].get("postgres", {})
    try:
        model = fitted(measured.get("crowds", ()), measured.get("workers", ()))
    except Unfit:
        return ""
    return "\n".join((_fits(model), _predictions(model), _ends(model)))


def _fits(model: Model) -> str:
    rows = (_fit(title, getattr(model, key)) for key, title in _FITS)
    head = "| What | Fitted | Residuals | Largest, of the mean |\n|---|---|---|---:|\n"
    return head + "".join(rows)


def _fit(title: str, found: Fit) -> str:
    terms = zip(found.terms, found.coefficients, strict=True)
    shown = " + ".join(f"{value:.3g} {_TERMS[term]}" for term, value in terms if value)
    residuals = ", ".join(f"{value:+.2g}" for value in found.residuals)
    return f"| {title} | {shown or '0'} | {residuals} | {found.error:.0%} |\n"


def _predictions(model: Model) -> str:
    cores = "".join(f" jobs per s, {count} cores |" for count in _CORES)
    head = (
        "| Workers | idle statements per s | heartbeats per s | idle server, cores | connections "
        f"| statements for one job | at most per s |{cores}\n|{'---:|' * (7 + len(_CORES))}\n"
    )
    return head + "".join(_prediction(model, workers) for workers in _FLEETS)


def _prediction(model: Model, workers: int) -> str:
    found = model.predict(workers, cores=_CORES[0])
    rates = (model.predict(workers, cores=cores).most_jobs for cores in _CORES)
    values = (*_shown(found), *rates)
    return f"| {workers:,} | {' | '.join(map(number, values))} |\n"


def _shown(found: Prediction) -> tuple[float, ...]:
    return (
        found.idle_statements,
        found.heartbeats,
        found.idle_server,
        found.connections,
        found.answers,
        found.answers_per_second,
    )


def _ends(model: Model) -> str:
    rooms = ", ".join(
        f"{connections:,} connections for {model.workers_for(connections=connections):,} workers"
        for connections in _CONNECTIONS
    )
    return (
        f"A drained job takes {model.server_per_job * 1e6:.0f} us of the server and {model.wal_per_job:,.0f} bytes of its "
        f"log at the dearest; an enqueue comes on top. Without a pooler there is room: {rooms}.\n"
    )
