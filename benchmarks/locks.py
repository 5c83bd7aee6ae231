"""What a lock costs that no one else wants: to acquire and to release it, again and again."""

from __future__ import annotations

from benchmarks import children
from benchmarks.limits.loop import paired
from benchmarks.measures import Figure, Measure
from benchmarks.places import Limits, Place
from benchmarks.sizes import Sizes
from duetime.locks import open_lock


class Locks(Measure):
    """Pairs of acquire and release per second, one after the other."""

    name = "locks"

    def figures(self, store: str) -> tuple[Figure, ...]:
        """Hold it to what people would take instead: redis-py's lock, or two statements of their own."""
        limit, goal = ("redis-py's Lock", 1.0) if store == "redis" else ("two bare statements", 0.7)
        return (
            Figure(
                key="pair",
                title="lock, acquire and release",
                unit="/s",
                better="more",
                limit=limit,
                goal=goal,
            ),
        )

    def limits(self, limits: Limits, sizes: Sizes) -> dict[str, float]:
        return {"pair": limits.locks(sizes.locks)}

    def run(self, place: Place, sizes: Sizes) -> dict[str, float]:
        return {"pair": float(children.run(locks, url=place.url, pairs=sizes.locks))}


async def locks(*, url: str, pairs: int) -> float:
    """Return how many times a second one lock is acquired and released."""
    lock = open_lock(url, "benchmark")

    async def take() -> bool:
        return await lock.acquire(timeout=0)

    return await paired(take, lock.release, pairs)
