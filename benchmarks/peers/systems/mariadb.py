"""Systems on MariaDB: ours, to be seen beside its other stores."""

from __future__ import annotations

from benchmarks.peers.systems.base import System, duetime

ON_MARIADB: tuple[System, ...] = (duetime("mariadb", pace=5_000),)
