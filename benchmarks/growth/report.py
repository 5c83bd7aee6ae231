"""The outcomes for people: tables on the terminal, and a page with tables and pictures in the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.growth import curves, plots
from benchmarks.growth.model import Fit, Model, Prediction, Unfit, each, fitted, fleet, once, pairs
from benchmarks.growth.runner import Results
from benchmarks.peers.sheet import number

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


def text(results: Results) -> str:
    """Return all tables and the model, for a terminal."""
    return "\n".join((_measured(results), *_sections(results, pictures=False), _model(results)))


def write(results: Results, folder: Path) -> Iterator[Path]:
    """Write the page and its pictures into a folder."""
    for engine, measured in results["engines"].items():
        for name, plot in curves.plots(engine, measured):
            picture = folder / _FOLDER / f"{name}.svg"
            picture.parent.mkdir(parents=True, exist_ok=True)
            picture.write_text(plots.svg(plot), encoding="utf-8")
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
        drawn = dict(curves.plots(engine, measured)) if pictures else {}
        for curve in curves.CURVES:
            points = measured.get(curve.name)
            if not points:
                continue
            yield f"\n### {curve.title}, {curves.title(engine)}\n\n"
            for name, plot in drawn.items():
                if name.startswith(f"{curve.name}-"):
                    yield f"![{plot.title}]({_FOLDER}/{name}.svg)\n\n"
            yield curves.table(curve, points)
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
