"""What a hybrid is worth where jobs for later are to survive a power cut, compared with each of its halves alone."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from benchmarks import children
from benchmarks.measures import Figure, client, worker
from benchmarks.places import connected, fill
from benchmarks.runner import Result, Row
from benchmarks.sizes import Sizes
from tools.servers import PostgresServer, RedisServer

NAME = "hybrid"

_LATER = 100_000
"""Jobs for later."""
_FIGURES = {
    "single": ("enqueue, one at a time", "jobs/s", "more"),
    "at_once": ("enqueue, 32 at once", "jobs/s", "more"),
    "drain": ("drain, concurrency 100", "jobs/s", "more"),
    "memory": ("memory of Redis", "MB", "less"),
}
_ALONE = {
    "postgres": "PostgreSQL alone",
    "safe": "Redis alone, appendfsync always",
    "quick": "Redis alone, appendfsync everysec",
}
"""The last one is not as safe: a power cut may take what was stored in the last moments, whenever it is due."""

Values = dict[str, float]


def measure(sizes: Sizes) -> Result:
    """Measure both halves and the hybrid in turn, and compare the hybrid with each half."""
    found: dict[str, list[Values]] = {name: [] for name in (*_ALONE, "hybrid")}
    for _ in range(sizes.pairs):
        with _servers() as urls:
            for name, (url, redis) in urls.items():
                found[name].append(_measure(url, redis, sizes))
    medians = {
        name: {key: statistics.median(one[key] for one in values) for key in _FIGURES}
        for name, values in found.items()
    }
    rows = [_row(key, other, medians) for key in _FIGURES for other in _ALONE if medians[other][key]]
    facts = {"near": "Redis, appendfsync everysec", "far": "PostgreSQL", "stored for later": f"{_LATER:,}"}
    return Result(store=NAME, facts=facts, rows=tuple(rows))


@contextmanager
def _servers() -> Iterator[dict[str, tuple[str, RedisServer | None]]]:
    """Yield the address of each store, with the Redis that it is on."""
    with (
        PostgresServer(fsync=True) as postgres,
        RedisServer("--appendfsync", "always") as safe,
        RedisServer() as quick,
        RedisServer() as near,
    ):
        alone, far = postgres.create_database("alone"), postgres.create_database("far")
        yield {
            "postgres": (alone, None),
            "safe": (safe.url(), safe),
            "quick": (quick.url(), quick),
            "hybrid": (f"hybrid+{near.url()}?far={quote(far, safe='')}", near),
        }


def _measure(url: str, redis: RedisServer | None, sizes: Sizes) -> Values:
    children.run(fill, url=url, future=_LATER)
    drained = float(children.run(worker, url=url, jobs=sizes.drain, concurrency=100))
    # What it stores is left there.
    rates: Values = children.run(
        client, url=url, singles=sizes.singles, at_once=sizes.at_once, bulk=sizes.bulk
    )
    return {
        **rates,
        "drain": drained,
        "memory": 0.0 if redis is None else _megabytes(redis),
    }


def _megabytes(redis: RedisServer) -> float:
    with connected(redis.url()) as server:
        return float(server.info("memory")["used_memory"]) / 1e6


def _row(key: str, other: str, medians: dict[str, Values]) -> Row:
    title, unit, better = _FIGURES[key]
    value, limit = medians["hybrid"][key], medians[other][key]
    figure = Figure(
        key=f"{key}_{other}",
        title=f"{title}, and {_ALONE[other]}",
        unit=unit,
        better="more" if better == "more" else "less",
        limit=_ALONE[other],
        flat=False,
    )
    return Row(
        store=NAME, figure=figure, value=value, limit=limit, ratio=value / limit, filled=value, worse=1.0
    )
