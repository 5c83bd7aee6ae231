"""The limits of databases that have a server."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

from benchmarks import children
from benchmarks.sizes import Sizes


@dataclass(frozen=True, slots=True)
class ServedLimits:
    """What a server can do at best, in a database of its own, by one of the modules in `benchmarks.limits`."""

    bare: ModuleType
    url: str

    def inserts(self, sizes: Sizes) -> dict[str, float]:
        """Insert one by one, by callers at once, and in bulk."""
        found: dict[str, float] = children.run(
            self.bare.inserts, url=self.url, singles=sizes.singles, at_once=sizes.at_once, bulk=sizes.bulk
        )
        return found

    def drain(self, jobs: int, batch: int) -> float:
        """Run the bare loop."""
        return float(children.run(self.bare.drain, url=self.url, jobs=jobs, batch=batch))

    def round_trips(self, pings: int) -> float:
        """Make the round trips that no design can do without."""
        return float(children.run(self.bare.round_trips, url=self.url, pings=pings))
