from __future__ import annotations

import pytest

from duetime.cli.output import say_lines
from duetime.model.text import printable


def test_whatever_a_terminal_might_obey_is_written_as_an_escape() -> None:
    assert printable("a\x1b[2Jb\tc\x00") == "a\\x1b[2Jb\\tc\\x00"


def test_tabs_in_a_text_of_lines_are_room(capsys: pytest.CaptureFixture[str]) -> None:
    say_lines("name\tsize\n\tbell\x07")
    assert capsys.readouterr().out == "name    size\n        bell\\x07\n"
