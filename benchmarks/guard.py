"""Compares the shares of the limits that we reach with those that were committed: `python -m benchmarks.guard`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import repeat
from pathlib import Path
from typing import Final, NamedTuple

import click

from benchmarks.measures import Drain, Enqueue, Idle, Lateness, Measure
from benchmarks.places import PLACES, Places
from benchmarks.processes import counting_processor
from benchmarks.sizes import GUARD

BASELINE: Final = Path(__file__).parent / "baseline.json"
"""The lowest shares that were seen of sound code: what a commit takes of the processor differs between machines."""
GROSS: Final = 0.6
"""Below this part of its committed share, a figure has not just met a busy machine."""
Chosen = Mapping[Measure, tuple[str, ...]]
"""Measures, and which figures of each are held to their shares: those that a busy machine moves little."""
BUSY: Final[Chosen] = {
    Enqueue(): ("single", "at_once", "bulk"),
    Drain(): ("drain_100", "drain_1000"),
    Lateness(): ("p50",),
}
"""Measured store by store."""
IDLE: Final[Chosen] = {Idle(): ("cpu", "memory")}
"""Measured on all stores at once: idle workers do not disturb each other."""
STORES: Final = ("sqlite", "postgres", "redis", "mariadb")
"""Those that are held to their shares."""
_LEAST: Final = 1e-3
"""What a figure is taken for that is nothing."""
_RATES: Final = ("enqueue", "drain")
"""Measures that count processor time; the others look at the wall clock, or at a process from outside."""

Shares = Mapping[str, float]
"""How much of its limit each figure reaches."""


class Change(NamedTuple):
    """A figure, now and as it was committed."""

    name: str
    now: float
    then: float | None

    @property
    def gross(self) -> bool:
        """Whether the loss is so large that someone has to look."""
        return self.then is not None and self.now < GROSS * self.then

    def __str__(self) -> str:
        if self.then is None:
            return f"{self.name:<48}{self.now:>8.0%}{'new':>9}"
        verdict = "   LOST" if self.gross else ""
        return f"{self.name:<48}{self.now:>8.0%}{self.then:>9.0%}{self.now / self.then - 1:>+9.0%}{verdict}"


def compare(now: Shares, then: Shares) -> list[Change]:
    """Return what happened to each figure."""
    return [Change(name, share, then.get(name)) for name, share in now.items()]


@click.command()
@click.option("--renew", is_flag=True, help="Write all that is measured as the new baseline.")
@click.option("--add", is_flag=True, help="Write only the figures that have no share in the baseline yet.")
def main(*, renew: bool, add: bool) -> None:
    """Measure, compare with the committed shares, and fail if a figure has lost much."""
    found = [measure(store, BUSY) for store in STORES]
    with ThreadPoolExecutor() as threads:
        found += threads.map(measure, STORES, repeat(IDLE))
    now = {name: round(share, 3) for shares in found for name, share in shares.items()}
    then: dict[str, float] = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    changes = compare(now, then)
    print(f"{'share of the limit':<48}{'now':>8}{'before':>9}{'change':>9}")
    print("\n".join(map(str, changes)))
    if renew or add:
        BASELINE.write_text(json.dumps(now if renew else {**now, **then}, indent=2) + "\n")
    if not renew and any(change.gross for change in changes):
        print(f"something lost more than {1 - GROSS:.0%}; if that is meant, run make bench-guard RENEW=1")
        sys.exit(1)


def measure(store: str, measures: Chosen) -> Shares:
    """Return the shares that one store reaches."""
    found: dict[str, float] = {}
    with PLACES[store](GUARD.future) as places:
        for asked, keys in measures.items():
            counting = counting_processor(places.server) if asked.name in _RATES else nullcontext()
            with counting:
                found |= _shares(asked, keys, store, places)
    return found


def _shares(asked: Measure, keys: Sequence[str], store: str, places: Places) -> Iterator[tuple[str, float]]:
    # Other programs only take from what is reached: the best of a few tries is the truest.
    tries = [
        (asked.run(places.empty, GUARD), asked.limits(places.limits, GUARD))
        for _ in range(1 if asked.once else GUARD.pairs)
    ]
    for figure in asked.figures(store):
        if figure.key not in keys:
            continue
        best = max if figure.better == "more" else min
        ours = best(ran[figure.key] for ran, _ in tries)
        limit = best(limits.get(figure.key, figure.goal or 0.0) for _, limits in tries)
        share = ours / limit if figure.better == "more" else limit / max(ours, _LEAST)
        yield f"{store}: {figure.title}", share


if __name__ == "__main__":
    main()
