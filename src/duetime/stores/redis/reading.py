"""The verbs of a Redis store that only read."""

from __future__ import annotations

from duetime.stores.redis.part import Part


class Reading(Part):
    """A part of `RedisStore`."""
