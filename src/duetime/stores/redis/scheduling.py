"""The verbs of a Redis store about schedules."""

from __future__ import annotations

from duetime.stores.redis.part import Part


class Scheduling(Part):
    """A part of `RedisStore`."""
