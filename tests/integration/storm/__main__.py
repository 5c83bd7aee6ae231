"""Storms over each store, and the page that reports them: `python -m tests.integration.storm`."""

from __future__ import annotations

import multiprocessing
import random
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import click

from tests.integration.storm.faults import STORES
from tests.integration.storm.storm import Report, storm_over

PAGE = Path("docs/internals/storm.md")
HEAD = Path(__file__).parent / "page.md"

Row = tuple[str, Callable[[Report], object]]


@click.command()
@click.option(
    "--store", "stores", multiple=True, type=click.Choice(STORES), default=STORES, help="Repeatable."
)
@click.option("--seconds", type=float, default=600, show_default=True, help="How long each storm lasts.")
@click.option("--seed", type=int, help="Draws jobs and faults; a new one each time, unless given.")
@click.option("--publish", is_flag=True, help=f"Write {PAGE}.")
def main(*, stores: Sequence[str], seconds: float, seed: int | None, publish: bool) -> None:
    """Break everything that can break on all stores at once, and look for promises that did not hold."""
    seed = random.randrange(2**32) if seed is None else seed
    with ProcessPoolExecutor(len(stores), mp_context=multiprocessing.get_context("spawn")) as pool:
        reports = list(pool.map(partial(storm_over, seconds=seconds, seed=seed), stores))
    click.echo(table(reports))
    broken = [f"{report.store}: {text}" for report in reports for text in report.violations]
    click.echo("\n".join(broken), err=True)
    if publish:
        listed = "".join(f"- {text}\n" for text in broken)
        found = f"\nNot kept, and to be looked into:\n\n{listed}" if broken else ""
        PAGE.write_text(f"{HEAD.read_text(encoding='utf-8')}\n{table(reports)}{found}", encoding="utf-8")
    sys.exit(bool(broken))


def table(reports: Sequence[Report]) -> str:
    """Return what each storm did and broke, a column each, in Markdown."""
    faults = sorted({fault for report in reports for fault in report.faults})
    rows: list[Row] = [
        ("seed", lambda report: report.seed),
        ("seconds", lambda report: f"{report.seconds:,.0f}"),
        *((fault, partial(_count, fault=fault)) for fault in faults),
        ("jobs accepted", lambda report: f"{report.jobs:,}"),
        ("of these succeeded", lambda report: f"{report.succeeded:,}"),
        (
            "ended with their worker, because their task may not be repeated",
            lambda report: f"{report.not_repeated:,}",
        ),
        ("failed, because too many workers died around them", lambda report: f"{report.given_up:,}"),
        ("runs that were repeated after a crash", lambda report: f"{report.repeated:,}"),
        ("calls of `enqueue` that raised and were repeated", lambda report: f"{report.failed_calls:,}"),
        ("occurrences of schedules", lambda report: f"{report.occurrences:,}"),
        ("**broken promises**", lambda report: f"**{len(report.violations)}**"),
    ]
    head = ["", *(report.store for report in reports)]
    rule = ["---", *("---:" for _ in reports)]
    body = [[title, *(str(shown(report)) for report in reports)] for title, shown in rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, rule, *body))


def _count(report: Report, *, fault: str) -> str:
    return f"{report.faults[fault]:,}" if fault in report.faults else "-"


if __name__ == "__main__":
    main()
