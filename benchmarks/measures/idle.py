"""What a worker costs that has nothing to do."""

from __future__ import annotations

import time
from typing import Any

from benchmarks import children
from benchmarks.idling import worker
from benchmarks.ledger import now
from benchmarks.measures.base import Figure
from benchmarks.places import Limits, Place
from benchmarks.processes import memory, processor_seconds
from benchmarks.sizes import Sizes

_SETTLE_IN = 3.0
_HEARTBEAT = "pulse"


class Idle:
    """Processor, memory and statements of an idle worker."""

    name = "idle"
    once = True
    pairs = None

    def figures(self, store: str) -> tuple[Figure, ...]:
        """Hold them to fixed bounds: an idle worker has no limit to be compared with."""
        del store
        return (
            Figure(key="cpu", title="idle, processor", unit="%", better="less", goal=0.1, flat=False),
            Figure(key="memory", title="idle, memory (PSS)", unit="MB", better="less", goal=28.0, flat=False),
            Figure(key="beats", title="idle, heartbeats", unit="/min", better="less", flat=False),
            Figure(
                key="writes", title="idle, other writes", unit="/min", better="less", goal=0.0, must=0.0, flat=False
            ),
            Figure(key="reads", title="idle, reads", unit="/min", better="less", flat=False),
        )  # fmt: skip

    def limits(self, limits: Limits, sizes: Sizes) -> dict[str, float]:
        """Nothing to compare with."""
        del limits, sizes
        return {}

    def run(self, place: Place, sizes: Sizes) -> dict[str, float]:
        """Watch a worker process from the outside, and what it sends from the inside."""
        with children.started(worker, url=place.url) as child:
            child.wait_ready()
            time.sleep(_SETTLE_IN)
            began, used = now(), processor_seconds(child.pid)
            time.sleep(sizes.idle)
            ended, used = now(), processor_seconds(child.pid) - used
            held = memory(child.pid)
            sent: list[list[Any]] = child.finish()
        place.tidy()
        seen = [(kind, name) for at, kind, name in sent if began <= at < ended]
        per_minute = 60e6 / (ended - began)
        beats = sum(name == _HEARTBEAT for _, name in seen)
        return {
            "cpu": used / ((ended - began) / 1e6) * 100,
            "memory": held,
            "beats": beats * per_minute,
            "writes": sum(kind == "write" and name not in _BEAT_SCRIPT for kind, name in seen) * per_minute,
            "reads": sum(kind == "read" for kind, _ in seen) * per_minute,
        }


_BEAT_SCRIPT = {_HEARTBEAT, "held_by"}
"""The statements of one heartbeat: it also asks what the worker holds."""
