"""The curve over worker processes: rates, lateness, and what the fleet costs the database."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from benchmarks.growth import feats
from benchmarks.growth.engines import Engine
from benchmarks.growth.feats import Figures
from benchmarks.growth.fleet import fleet
from benchmarks.growth.sizes import Sizes


def measure(engine: Engine, sizes: Sizes) -> Iterator[Figures]:
    """Yield the figures of each number of processes."""
    for workers in sizes.workers:
        yield {"workers": workers, **_one(engine, sizes, workers)}
        engine.tidy()


def _one(engine: Engine, sizes: Sizes, workers: int) -> Figures:
    with fleet(engine.url, processes=workers) as started:
        time.sleep(sizes.settle_in)
        idle, _ = feats.idle(engine, started, seconds=sizes.idle)
        begun = feats.start(started, pings=sizes.pings)
        late = feats.on_time(started, jobs=sizes.one_offs, rate=sizes.rate)
        waited = feats.drain(engine, started, jobs=sizes.waiting * workers, waiting=True)
        # More workers than cores share the cores; more jobs would only take longer.
        drained = feats.drain(engine, started, jobs=sizes.drain * min(workers, os.cpu_count() or 1))
    return {
        **idle,
        "start_p50": begun["p50"],
        "start_p99": begun["p99"],
        "late_p50": late["p50"],
        "late_p99": late["p99"],
        "drain_waiting": waited.rate,
        "drain": drained.rate,
        "worker_us": drained.processor / len(drained.entries) * 1e6,
        **_cost(drained),
    }


def _cost(drained: feats.Drained) -> Figures:
    if drained.load is None:
        return {}
    load, jobs = drained.load, len(drained.entries)
    return {
        "statements_per_job": load.statements / jobs,
        "statements_per_second": load.statements / load.seconds,
        "commits_per_job": load.commits / jobs,
        "server_us": load.processor / jobs * 1e6,
        "wal_per_job": load.wal / jobs,
    }
