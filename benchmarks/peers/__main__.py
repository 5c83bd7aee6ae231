"""The command: `python -m benchmarks.peers`."""

from __future__ import annotations

import os
import random
import sys
from dataclasses import replace
from pathlib import Path

import click

from benchmarks.peers import peer, report, runner
from benchmarks.peers.catalogue import ENGINES, SYSTEMS, Engine, named
from benchmarks.peers.cells import Results
from benchmarks.peers.sizes import SIZES
from benchmarks.peers.workloads import WORKLOADS

_FOLDER = peer.ROOT / ".bench" / "results"


@click.command()
@click.option("--quick", "size", flag_value="quick", help="Fewer jobs and shorter waits: half an hour.")
@click.option("--full", "size", flag_value="full", default="full", hidden=True)
@click.option("--tiny", "size", flag_value="tiny", hidden=True, help="Proves that everything works.")
@click.option("--engine", "engines", multiple=True, type=click.Choice(ENGINES), help="Only this database.")
@click.option(
    "--system",
    "systems",
    multiple=True,
    type=click.Choice([system.name for system in SYSTEMS]),
    help="Only this system.",
)
@click.option(
    "--workload", "workloads", multiple=True, type=click.Choice(list(WORKLOADS)), help="Only this workload."
)
@click.option("--future", type=click.IntRange(min=1), help="So many jobs stored for later.")
@click.option("--rounds", type=click.IntRange(min=1), help="Measure each cell so often; the median counts.")
@click.option("--results", type=click.Path(file_okay=False, path_type=Path), help="Keep the outcomes here.")
@click.option("--seed", type=int, help="Take the cells in the order of an earlier run.")
@click.option("--fresh", is_flag=True, help="Forget the outcomes of earlier runs.")
@click.option(
    "--report",
    "only_report",
    is_flag=True,
    help="Measure nothing; print the tables of earlier runs, else those that are published.",
)
@click.option("--publish", is_flag=True, help="Write the tables and plots into the documentation.")
@click.option(
    "--to",
    "docs",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write them into this folder instead.",
)
def main(
    *,
    size: str,
    engines: tuple[Engine, ...],
    systems: tuple[str, ...],
    workloads: tuple[str, ...],
    future: int | None,
    rounds: int | None,
    results: Path | None,
    seed: int | None,
    fresh: bool,
    only_report: bool,
    publish: bool,
    docs: Path | None,
) -> None:
    """Measure Duetime beside other schedulers; a run that is broken off goes on where it was."""
    sizes = SIZES[size]
    sizes = replace(sizes, future=future or sizes.future, rounds=rounds or sizes.rounds)
    folder = results or _FOLDER / (size if future is None else f"{size}-{future}")
    kept = Results(folder)
    request = runner.Request(
        engines=engines or ENGINES,
        systems=[named(name) for name in systems] if systems else SYSTEMS,
        workloads=workloads or tuple(WORKLOADS),
        sizes=sizes,
    )
    broken: list[str] = []
    if not only_report:
        if os.getloadavg()[0] > 0.5:
            print(
                "other programs are busy on this machine; the figures will be worth little", file=sys.stderr
            )
        if fresh:
            runner.forget(request, kept)
        broken = runner.run(request, kept, seed=random.randrange(10_000) if seed is None else seed)
    published = docs or peer.ROOT / "docs" / "reference"
    measured = report.Measured.now(kept, sizes)
    if only_report and not measured.cells:
        measured = report.Measured.published(published)
    print(report.tables(measured))
    if publish or docs:
        for path in report.write(measured, published):
            print(path, file=sys.stderr)
    for failure in broken:
        print(f"Duetime went wrong: {failure}", file=sys.stderr)
    if broken:
        sys.exit(1)


if __name__ == "__main__":
    main()
