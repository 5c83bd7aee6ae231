"""The picture of a terminal."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from duetime.cli.top import TopView, view_lines
from tools import terminal

CELL = re.compile(r'<text x="(.*?)" y="(.*?)" textLength=".*?"(?: fill="(.*?)")?>(.*?)</text>')


def test_cells_stand_where_they_stood_in_their_colours() -> None:
    assert CELL.findall(terminal.picture("a  \x1b[31mfailed\x1b[0m: <b>\nc")) == [
        ("16.0", "34", "", "a"),
        ("39.4", "34", "#ff7b72", "failed"),
        ("86.2", "34", "", ": &lt;b&gt;"),
        ("16.0", "52", "", "c"),
    ]


def test_the_picture_in_the_readme_shows_the_columns_that_there_are() -> None:
    shown = {text for *_, text in CELL.findall(terminal.PICTURE.read_text(encoding="utf-8"))}
    empty = TopView(now=datetime.now(UTC), queues=(), workers=(), running=(), upcoming=())
    heads = {word for line in view_lines(empty, width=200) if line.isupper() for word in line.split()}
    assert "SLOTS" in heads
    assert heads <= shown, "run `make terminal`"
