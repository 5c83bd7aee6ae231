"""Compares the shares of the limits that we reach with those that were committed: `python -m benchmarks.guard`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import click

from benchmarks.measures.base import Measure
from benchmarks.measures.drain import Drain
from benchmarks.measures.enqueue import Enqueue
from benchmarks.places import PLACES, Places
from benchmarks.sizes import GUARD
from benchmarks.watch import counting_processor

BASELINE: Final = Path(__file__).parent / "baseline.json"
"""The lowest shares that were seen of sound code: what a commit takes of the processor differs between machines."""
GROSS: Final = 0.6
"""Below this part of its committed share, a figure has not just met a busy machine."""
MEASURES: Final[tuple[Measure, ...]] = (Enqueue(), Drain())
STORES: Final = ("sqlite", "postgres", "redis")
"""Those that are held to their shares."""

Shares = Mapping[str, float]
"""How much of its limit each figure reaches."""


class Change(NamedTuple):
    """A figure, now and as it was committed."""

    name: str
    now: float
    then: float | None

    @property
    def gross(self) -> bool:
        """Whether so much was lost that somebody has to look."""
        return self.then is not None and self.now < GROSS * self.then

    def __str__(self) -> str:
        if self.then is None:
            return f"{self.name:<48}{self.now:>8.0%}{'new':>9}"
        verdict = "   LOST" if self.gross else ""
        return f"{self.name:<48}{self.now:>8.0%}{self.then:>9.0%}{self.now / self.then - 1:>+9.0%}{verdict}"


def compare(now: Shares, then: Shares) -> list[Change]:
    """Tell what became of each figure."""
    return [Change(name, share, then.get(name)) for name, share in now.items()]


@click.command()
@click.option("--renew", is_flag=True, help="Write what is measured as the new baseline.")
def main(*, renew: bool) -> None:
    """Measure by processor time, which a busy machine disturbs little, and fail where a figure has lost much."""
    now = {name: share for store in STORES for name, share in measure(store).items()}
    changes = compare(now, json.loads(BASELINE.read_text()) if BASELINE.exists() else {})
    print(f"{'share of the limit, by processor time':<48}{'now':>8}{'before':>9}{'change':>9}")
    print("\n".join(map(str, changes)))
    if renew:
        BASELINE.write_text(
            json.dumps({name: round(share, 3) for name, share in now.items()}, indent=2) + "\n"
        )
    elif any(change.gross for change in changes):
        print(f"something lost more than {1 - GROSS:.0%}; if that is meant, run make bench-guard RENEW=1")
        sys.exit(1)


def measure(store: str) -> Shares:
    """Return the shares that one store reaches: the best of a few tries against the best of its limit."""
    with PLACES[store](GUARD.future) as places, counting_processor(places.server):
        return {name: share for asked in MEASURES for name, share in _shares(asked, store, places)}


def _shares(asked: Measure, store: str, places: Places) -> Iterator[tuple[str, float]]:
    # Who else runs takes from caches and clocks of the processor, and never adds to them: the best is the truest.
    tries = [(asked.run(places.empty, GUARD), asked.limits(places.limits, GUARD)) for _ in range(GUARD.pairs)]
    for figure in asked.figures(store):
        ours, limit = (max(one[figure.key] for one in side) for side in zip(*tries, strict=True))
        yield f"{store}: {figure.title}", ours / limit


if __name__ == "__main__":
    main()
