"""The command: `python -m benchmarks.growth`."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import click

from benchmarks.growth import report, runner
from benchmarks.growth.engines import ENGINES
from benchmarks.growth.sizes import FULL, QUICK, Sizes

_DOCS = Path(__file__).resolve().parents[2] / "docs" / "reference"
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option("--quick", is_flag=True, help="Fewer points and fewer jobs.")
@click.option(
    "--store", "stores", multiple=True, type=click.Choice(list(ENGINES)), help="Only this database."
)
@click.option("--only", "curves", multiple=True, type=click.Choice(runner.CURVES), help="Only this curve.")
@click.option("--future", type=int, help="One more point with so many jobs stored for later.")
@click.option("--json", "file", type=_FILE, default=Path("growth.json"), help="Where all figures go.")
@click.option("--report", "known", type=_FILE, help="Measure nothing; show what is in such a file.")
@click.option("--publish", is_flag=True, help="Also write the page and its pictures in docs/reference.")
def main(
    *,
    quick: bool,
    stores: tuple[str, ...],
    curves: tuple[str, ...],
    future: int | None,
    file: Path,
    known: Path | None,
    publish: bool,
) -> None:
    """Measure how rates, lateness and the load of the database grow, and what a model makes of that."""
    if known is None:
        if os.getloadavg()[0] > 0.5:
            print("other programs are busy on this machine; the times will be worth little", file=sys.stderr)
        sizes = _with(QUICK if quick else FULL, future)
        results = runner.run(stores or tuple(ENGINES), curves or runner.CURVES, sizes)
        file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    else:
        results = json.loads(known.read_text(encoding="utf-8"))
    print(report.tables(results))
    if publish:
        for written in report.write(results, _DOCS):
            print(written, file=sys.stderr)


def _with(sizes: Sizes, future: int | None) -> Sizes:
    return sizes if future is None else replace(sizes, stored=tuple(sorted({*sizes.stored, future})))


if __name__ == "__main__":
    main()
