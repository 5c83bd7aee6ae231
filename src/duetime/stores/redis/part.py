"""What the parts of the store share."""

from __future__ import annotations

from duetime.model.clock import Clock
from duetime.stores.redis.calls import Calls


class Part:
    """A part of `RedisStore`: the verbs about one noun."""

    _calls: Calls
    _clock: Clock
    """The time of this host, or that of a test; what must be right goes by the server's."""
