"""`duetime explain` and `duetime top`."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.kit import URL, duetime, from_json


def test_a_job_is_explained_by_its_id(folder: Path) -> None:
    job_id = from_json("enqueue", "shop:scheduler", "shop.greet", "name=x", "--delay", "1h", "--json")["id"]
    shown = duetime("explain", job_id, *URL)
    assert shown.exit_code == 0
    assert "now                  It is not due until" in shown.stdout
    told = from_json("explain", job_id, *URL, "--json")
    assert [line["at"] is None for line in told["lines"]] == [False, True, True]


def test_an_unknown_job_cannot_be_explained(folder: Path) -> None:
    duetime("migrate", *URL)
    assert duetime("explain", "nothing", *URL).exit_code == 3


def test_one_look_is_printed_where_there_is_no_terminal(folder: Path) -> None:
    duetime("migrate", *URL)
    shown = duetime("top", *URL)
    assert shown.exit_code == 0
    assert "0 workers, 0 of 0 slots taken" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert from_json("top", *URL, "--json")["running"] == []
