"""The verbs of a Redis store that forget."""

from __future__ import annotations

from duetime.stores.redis.part import Part


class Retaining(Part):
    """A part of `RedisStore`."""
