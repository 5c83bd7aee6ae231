"""A sheet as a table in Markdown."""

from __future__ import annotations

from benchmarks.peers.sheet import Row, Sheet, number


def markdown(sheet: Sheet) -> str:
    """Return the table; the best system of each column stands out."""
    head = ["", *(f"{column.title}, {column.unit}" for column in sheet.columns), "notes"]
    rules = ["---", *("---:" for _ in sheet.columns), "---"]
    return "".join(_line(cells) for cells in (head, rules, *(_cells(sheet, row) for row in sheet.rows)))


def _cells(sheet: Sheet, row: Row) -> list[str]:
    title = f"**{row.title}**" if row.ours else f"*{row.title}*" if row.limit else row.title
    return [title, *(_cell(sheet, row, n) for n in range(len(sheet.columns))), row.notes]


def _cell(sheet: Sheet, row: Row, column: int) -> str:
    value, worse = row.values[column], row.worse[column]
    if value is None:
        return "" if row.limit else "-"
    shown = number(value)
    if value == sheet.best(column) and not row.limit:
        shown = f"**{shown}**"
    return shown if worse is None else f"{shown} ({worse:.2f} x)"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
