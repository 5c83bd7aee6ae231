from __future__ import annotations

import json

import pytest

from duetime.cli.jobs import LogPrinter
from duetime.model.reports import LogPart


def part(fence: int, line: int, text: str) -> LogPart:
    return LogPart(job_id="job", fence=fence, attempt=fence, line=line, text=text)


def test_tries_are_told_apart_and_gaps_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    printer = LogPrinter(as_json=False)
    printer.print([part(1, 1, "one\ntwo")])
    printer.print([part(1, 3, "three"), part(1, 10, "ten"), part(3, 1, "again"), part(3, 5, "five")])
    assert capsys.readouterr().out.splitlines() == [
        "one",
        "two",
        "three",
        "… 6 lines missing here …",
        "ten",
        "== try 3",
        "again",
        "… 3 lines missing here …",
        "five",
    ]


def test_no_terminal_obeys_what_a_job_has_logged(capsys: pytest.CaptureFixture[str]) -> None:
    LogPrinter(as_json=False).print([part(1, 1, "\x1b[31mred")])
    assert capsys.readouterr().out == "\\x1b[31mred\n"


def test_json_is_one_line_for_each_part(capsys: pytest.CaptureFixture[str]) -> None:
    LogPrinter(as_json=True).print([part(1, 1, "one\ntwo"), part(1, 3, "three")])
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["line"], line["text"]) for line in told] == [(1, "one\ntwo"), (3, "three")]
