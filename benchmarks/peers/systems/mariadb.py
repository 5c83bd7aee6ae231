"""Systems on MariaDB: ours, to be seen beside its other stores."""

from __future__ import annotations

from benchmarks.peers.systems.base import OURS, System

ON_MARIADB: tuple[System, ...] = (
    System(
        name="duetime-mariadb",
        title="Duetime",
        engine="mariadb",
        adapter="duetime",
        requirements=OURS,
        settings="defaults; drain with concurrency 100 and 1,000, the better one counts",
        widths=(100, 1_000),
        pace=5_000,
        ours=True,
    ),
)
