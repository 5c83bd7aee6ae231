from __future__ import annotations

import pytest

from duetime.cli.output import say_lines, table_lines
from duetime.model.text import printable


def test_whatever_a_terminal_might_obey_is_written_as_an_escape() -> None:
    assert printable("a\x1b[2Jb\tc\x00") == "a\\x1b[2Jb\\tc\\x00"


def test_tabs_in_a_text_of_lines_are_room(capsys: pytest.CaptureFixture[str]) -> None:
    say_lines("name\tsize\n\tbell\x07")
    assert capsys.readouterr().out == "name    size\n        bell\\x07\n"


HEAD, ROWS = ("ID", "STATE", "ERROR"), [("1", "failed", "failed \x1b[31mbadly"), ("2", "paused: by me", "")]


def test_states_have_colours_on_a_terminal_and_nothing_else_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert list(table_lines(HEAD, ROWS)) == [
        "ID  STATE          ERROR",
        "1   \x1b[31mfailed\x1b[0m         failed \\x1b[31mbadly",
        "2   \x1b[33mpaused\x1b[0m: by me",
    ]
    assert list(table_lines(HEAD, ROWS, most=8))[1:] == ["1   fai…", "2   pau…"]
    assert list(table_lines(HEAD, ROWS, most=14))[2] == "2   \x1b[33mpaused\x1b[0m: b…"


def test_no_colours_are_shown_to_a_file_or_to_those_who_want_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b" not in "".join(table_lines(HEAD, ROWS))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in "".join(table_lines(HEAD, ROWS))
