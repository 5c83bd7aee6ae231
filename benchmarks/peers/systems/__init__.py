"""The catalogue: which systems are measured, at which versions, with which settings."""

from __future__ import annotations

from benchmarks.peers.systems.base import ENGINES, TITLES, Engine, System
from benchmarks.peers.systems.mariadb import ON_MARIADB
from benchmarks.peers.systems.postgres import ON_POSTGRES
from benchmarks.peers.systems.redis import ON_REDIS
from benchmarks.peers.systems.sqlite import ON_SQLITE

__all__ = ["ENGINES", "SYSTEMS", "TITLES", "Engine", "System", "named"]

SYSTEMS: tuple[System, ...] = (*ON_SQLITE, *ON_POSTGRES, *ON_MARIADB, *ON_REDIS)


def named(name: str) -> System:
    """Return a system of the catalogue."""
    return next(system for system in SYSTEMS if system.name == name)
