"""The command: `python -m benchmarks`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from benchmarks import cron, hybrid, report, runner, timers
from benchmarks.places import PLACES
from benchmarks.sizes import FULL, QUICK

_NAMES = [*(measure.name for measure in runner.MEASURES), cron.NAME, timers.NAME, hybrid.NAME]


@click.command()
@click.option("--quick", is_flag=True, help="Fewer jobs, fewer pairs, 100,000 jobs stored for later.")
@click.option("--store", "stores", multiple=True, type=click.Choice(list(PLACES)), help="Only this database.")
@click.option("--only", "names", multiple=True, type=click.Choice(_NAMES), help="Only this measure.")
@click.option(
    "--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Also write all figures here."
)
@click.option("--check", is_flag=True, help="Exit with 1 when something that has to hold does not.")
def main(
    *, quick: bool, stores: tuple[str, ...], names: tuple[str, ...], file: Path | None, check: bool
) -> None:
    """Compare Duetime with the bare loop, the bare insert and the bare timer, as ratios within one run."""
    sizes = QUICK if quick else FULL
    if os.getloadavg()[0] > 0.5:
        print("other programs are busy on this machine; the figures will be worth little", file=sys.stderr)
    results = runner.run(stores or tuple(PLACES), names or _NAMES, sizes)
    results += [one.measure() for one in (cron, timers) if one.NAME in (names or _NAMES)]
    results += [hybrid.measure(sizes)] if hybrid.NAME in (names or _NAMES) else []
    print(report.as_table(results, sizes))
    if file is not None:
        file.write_text(json.dumps(report.as_json(results, sizes), indent=2) + "\n")
    if check and report.broken(results):
        sys.exit(1)


if __name__ == "__main__":
    main()
