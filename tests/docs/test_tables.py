"""The page about the tables is as it would be written now."""

from __future__ import annotations

from tools import tables


def test_the_page_about_tables_is_up_to_date() -> None:
    assert tables.PAGE.read_text(encoding="utf-8") == tables.page(), "run `make docs`"


def test_the_page_has_every_column_that_is_described() -> None:
    text = tables.page()
    assert text.count("\n## ") == 13
    assert "| `due_at` | When it may start, in microseconds since 1970 |" in text
    assert "| `tags` | Between bars: \\|a\\|b\\| |" in text
