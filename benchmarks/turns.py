"""Compares this checkout with another one, measure by measure in turns: `python -m benchmarks.turns --other PATH`.

Each side has a process of its own with a server of its own, and measures only while the other side waits.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Final

import click

from benchmarks.measures import Figure, Measure
from benchmarks.places import PLACES
from benchmarks.runner import MEASURES
from benchmarks.sizes import QUICK

HERE: Final = Path(__file__).resolve().parent.parent
CHOICES: Final = {measure.name: measure for measure in MEASURES}
USUAL: Final = ("enqueue", "drain", "start", "lateness")
SIZES: Final = replace(QUICK, future=0, drain=40_000, singles=1_500, at_once=12_800, bulk=40_000)


@click.command()
@click.option(
    "--other", type=click.Path(file_okay=False, exists=True, path_type=Path), help="The older checkout."
)
@click.option("--store", "stores", multiple=True, type=click.Choice(list(PLACES)), default=list(PLACES))
@click.option("--only", "names", multiple=True, type=click.Choice(list(CHOICES)), default=USUAL)
@click.option("--pairs", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("--side", hidden=True, help="Be one side, on this store.")
def main(
    *, other: Path | None, stores: Sequence[str], names: Sequence[str], pairs: int, side: str | None
) -> None:
    """Print how each figure of this checkout compares with the other's: the median over the pairs of their ratios."""
    if side is not None:
        serve(side)
    elif other is None:
        raise click.UsageError("Name the checkout to compare with: --other PATH")
    else:
        print(f"{'figure':<48}{'other':>12}{'here':>12}{'here/other':>12}  quartiles")
        for store in stores:
            compare(store, [CHOICES[name] for name in names], other=other.resolve(), pairs=pairs)


def compare(store: str, measures: Sequence[Measure], *, other: Path, pairs: int) -> None:
    """Measure both sides of one store in turns, and print a line for each figure."""
    with opened(other, store) as old, opened(HERE, store) as new:
        for measure in measures:
            found: dict[str, list[tuple[float, float]]] = defaultdict(list)
            for n in range(pairs + 1):
                order = (old, new) if n % 2 else (new, old)
                values = {side: side.ask(measure.name) for side in order}
                # The first pair warms both sides up.
                for key in values[new] if n else ():
                    found[key].append((values[old][key], values[new][key]))
            for figure in measure.figures(store):
                print(line(store, figure, found[figure.key]), flush=True)


def line(store: str, figure: Figure, pairs: Sequence[tuple[float, float]]) -> str:
    """Say what became of a figure."""
    ratios = sorted(new / old for old, new in pairs if old)
    old, new = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(ratios) if ratios else float("nan")
    spread = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else [ratio] * 3
    worse = ratio < 0.95 if figure.better == "more" else ratio > 1.05
    title = f"{store}: {figure.title} ({figure.unit})"
    mark = "   WORSE" if worse else ""
    return f"{title:<48}{old:>12,.2f}{new:>12,.2f}{ratio:>12.3f}  {spread[0]:.2f} to {spread[2]:.2f}{mark}"


class Side:
    """A process that measures one checkout when it is asked to."""

    def __init__(self, asking: IO[str], answers: IO[str]) -> None:
        self._asking = asking
        self._answers = answers

    def ask(self, measure: str) -> dict[str, float]:
        """Have one measure taken."""
        print(measure, file=self._asking, flush=True)
        answer = self._answers.readline()
        if not answer:
            raise SystemExit("one side has ended before it answered; what it printed is above")
        return dict(json.loads(answer))


@contextmanager
def opened(checkout: Path, store: str) -> Iterator[Side]:
    """Start a side with the code of a checkout, and end it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout / "src"), str(checkout)])}
    # Each side measures with its own benchmarks: their modules may have other names there.
    command = [sys.executable, "-m", "benchmarks.turns", "--side", store]
    with subprocess.Popen(
        command, cwd=checkout, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Side(process.stdin, process.stdout)
        process.stdin.close()


def serve(store: str) -> None:
    """Measure what is asked for until there are no more questions."""
    with PLACES[store](0) as places:
        for name in sys.stdin:
            print(json.dumps(CHOICES[name.strip()].run(places.empty, SIZES)), flush=True)


if __name__ == "__main__":
    main()
