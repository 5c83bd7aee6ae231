"""The command: `python -m benchmarks.marathon`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from benchmarks.marathon.run import DATABASES, Marathon, run
from benchmarks.report import machine

_QUARTERS = ("first", "second", "third", "last")
_ROW = "{:<8} {:>10} {:>10} {:>10} {:>10} {:>10}"


@click.command()
@click.option("--jobs", type=click.IntRange(min=1), default=1_000_000, help="How many jobs to drain.")
@click.option(
    "--store", "stores", multiple=True, type=click.Choice(list(DATABASES)), help="Only this database."
)
@click.option(
    "--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Also write all samples here."
)
@click.option("--check", is_flag=True, help="Exit with 1 when something that has to hold does not.")
def main(*, jobs: int, stores: tuple[str, ...], file: Path | None, check: bool) -> None:
    """Drain a million jobs and tell whether memory is flat, sizes are bounded and the rate lasts."""
    found: list[Marathon] = []
    for engine in stores or tuple(DATABASES):
        print(f"{engine}: storing and draining {jobs:,} jobs", file=sys.stderr, flush=True)
        found.append(run(engine, jobs=jobs))
        print("\n".join(lines(found[-1])), flush=True)
    if file is not None:
        file.write_text(
            json.dumps({"machine": machine(), "marathons": [asdict(each) for each in found]}) + "\n"
        )
    if check and not all(verdict.holds for each in found for verdict in each.verdicts):
        sys.exit(1)


def lines(marathon: Marathon) -> Iterator[str]:
    """Yield what came of a marathon, for a terminal."""
    yield f"\n{marathon.facts}: {marathon.jobs:,} jobs"
    yield _ROW.format("quarter", "jobs/s", "memory MB", "table MB", "log MB", "dead rows")
    for name, part in zip(_QUARTERS, marathon.parts, strict=True):
        if not part.samples:
            continue
        figures: Sequence[float] = (
            part.rate,
            part.median(lambda sample: sample.memory),
            part.median(lambda sample: sample.table),
            part.log,
            part.median(lambda sample: sample.dead),
        )
        yield _ROW.format(name, *(f"{figure:,.0f}" for figure in figures))
    if marathon.written is not None:
        yield f"log written: {marathon.written:,.0f} MB"
    for verdict in marathon.verdicts:
        yield f"{'holds' if verdict.holds else 'DOES NOT HOLD'}: {verdict.title} ({verdict.because})"


if __name__ == "__main__":
    main()
