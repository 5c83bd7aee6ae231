"""The databases of a run: one empty, one full of jobs for later, one for the bare loops."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from benchmarks.places.base import Limits, Place, Places
from benchmarks.places.filling import fill
from benchmarks.places.mariadb import mariadb_places
from benchmarks.places.postgres import postgres_places
from benchmarks.places.redis import redis_places
from benchmarks.places.sqlite import sqlite_places

__all__ = ["PLACES", "Limits", "Place", "Places", "fill"]

PLACES: dict[str, Callable[[int], AbstractContextManager[Places]]] = {
    "sqlite": sqlite_places,
    "postgres": postgres_places,
    "mariadb": mariadb_places,
    "redis": redis_places,
}
