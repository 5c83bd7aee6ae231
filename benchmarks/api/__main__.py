"""The command: `python -m benchmarks.api`."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from benchmarks import children
from benchmarks.api import lists, requests, stored
from benchmarks.report import machine
from tools.servers import MariaDbServer, PostgresServer, RedisServer

_MEASURES = ("requests", "lists")
_BESIDE_BARE = ("sqlite", "postgres")
GOAL = 0.6
"""Of the requests of a bare endpoint."""
SLOWEST = 300.0
"""Milliseconds, at the 95th percentile."""


@contextmanager
def _sqlite() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="duetime-bench-") as folder:
        yield f"sqlite:///{folder}/api.db"


@contextmanager
def _postgres() -> Iterator[str]:
    with PostgresServer(fsync=True) as server:
        yield server.create_database("api")


@contextmanager
def _mariadb() -> Iterator[str]:
    with MariaDbServer() as server:
        yield server.create_database("api")


@contextmanager
def _redis() -> Iterator[str]:
    with RedisServer() as server:
        yield server.url()


_STORES: dict[str, Callable[[], AbstractContextManager[str]]] = {
    "sqlite": _sqlite,
    "postgres": _postgres,
    "mariadb": _mariadb,
    "redis": _redis,
}


@click.command()
@click.option(
    "--store", "stores", multiple=True, type=click.Choice(list(_STORES)), help="Only this database."
)
@click.option("--only", "measures", multiple=True, type=click.Choice(_MEASURES), help="Only this measure.")
@click.option("--jobs", type=int, default=1_000_000, show_default=True, help="Jobs stored for the lists.")
@click.option("--turns", type=int, default=5, show_default=True, help="How often each server is asked.")
@click.option(
    "--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Also write all figures here."
)
def main(*, stores: Sequence[str], measures: Sequence[str], jobs: int, turns: int, file: Path | None) -> None:
    """Measure requests beside a bare endpoint, and lists, filters and counts of many stored jobs."""
    if os.getloadavg()[0] > 0.5:
        print("other programs are busy on this machine; the times will be worth little", file=sys.stderr)
    found: dict[str, Any] = {"machine": machine(), "requests": {}, "lists": {}}
    for store in stores or _STORES:
        if "requests" in (measures or _MEASURES) and store in _BESIDE_BARE:
            with _STORES[store]() as url:
                rates = requests.measure(url, turns=turns, seconds=2)
            found["requests"][store] = list(map(asdict, rates))
            print(_rates(store, rates), flush=True)
        if "lists" in (measures or _MEASURES):
            with _STORES[store]() as url:
                stored.fill(url, jobs)
                found["lists"][store] = children.run(lists.ask, url=url, rounds=30)
            print(_times(store, jobs, found["lists"][store]), flush=True)
    if file is not None:
        file.write_text(json.dumps(found, indent=1) + "\n")


def _rates(store: str, rates: Sequence[requests.Rate]) -> str:
    lines = [f"{store}: requests a second, beside a bare endpoint; goal {GOAL:.0%}"]
    lines += [
        f"  {one.what:<5}{one.connections:>3} at a time {one.api:>8,.0f} {one.bare:>8,.0f} {one.ratio:>6.0%}"
        f"   by processor time {one.spent:.0%}"
        for one in rates
    ]
    return "\n".join(lines)


def _times(store: str, jobs: int, times: dict[str, dict[str, float]]) -> str:
    lines = [f"{store}: {jobs:,} jobs stored, p50 and p95 in milliseconds; at most {SLOWEST:g}"]
    lines += [
        f"  {title:<26}{one['p50']:>8.1f} {one['p95']:>8.1f} {one['items']:>5.0f} items"
        f"{', partial' if one['partial'] else ''}{'  TOO SLOW' if one['p95'] > SLOWEST else ''}"
        for title, one in times.items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
