"""`duetime uninstall`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from duetime.cli import output
from tests.acceptance.kit import URL, duetime, from_json, until, worker


@pytest.fixture(autouse=True)
def _job(folder: Path) -> None:
    duetime("enqueue", "shop:scheduler", "shop.slow")
    with closing(sqlite3.connect(folder / "jobs.db")) as file:
        file.execute("CREATE TABLE orders (id integer)")


def tables(folder: Path) -> set[str]:
    with closing(sqlite3.connect(folder / "jobs.db")) as file:
        return {name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_all_tables_are_listed_and_removed_and_nothing_else(folder: Path) -> None:
    foreseen = duetime("uninstall", "--dry-run", *URL)
    assert foreseen.exit_code == 0
    assert ["duetime_jobs", "1"] in [line.split() for line in foreseen.stdout.splitlines()]
    assert "orders" not in foreseen.stdout
    assert {"duetime_jobs", "orders"} <= tables(folder)
    answer = from_json("uninstall", "sqlite:///jobs.db", "--yes")
    assert (answer["removed"]["duetime_jobs"], answer["dry_run"]) == (1, False)
    assert tables(folder) == {"orders"}
    again = duetime("uninstall", "--yes", *URL)
    assert (again.exit_code, again.stdout) == (0, "there is nothing of 'duetime' in sqlite:///jobs.db\n")
    assert duetime("jobs", "list", *URL).exit_code == 4


def test_another_namespace_stays(folder: Path) -> None:
    duetime("migrate", "--namespace", "billing", *URL)
    assert duetime("uninstall", "--yes", "--namespace", "billing", *URL).exit_code == 0
    assert {name for name in tables(folder) if name.startswith("billing")} == set()
    assert len(from_json("jobs", "list", *URL)) == 1


def test_without_a_terminal_a_yes_is_needed(folder: Path) -> None:
    refused = duetime("uninstall", *URL)
    assert (refused.exit_code, "say --yes" in refused.stderr) == (2, True)
    assert "duetime_jobs" in tables(folder)


@pytest.mark.parametrize(("typed", "code"), [("duetime", 0), ("y", 2)])
def test_on_a_terminal_it_shows_what_goes_and_asks_for_the_namespace(
    folder: Path, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    monkeypatch.setattr(output, "is_interactive", lambda: True)
    result = duetime("uninstall", *URL, stdin=f"{typed}\n")
    assert result.exit_code == code
    assert "this is what there is of 'duetime' in sqlite:///jobs.db" in result.stderr
    assert ("duetime_jobs" in tables(folder)) == (code != 0)


def test_while_a_worker_lives_it_is_refused_unless_by_force(folder: Path) -> None:
    with worker() as process:
        until(process, "slow began")
        refused = duetime("uninstall", "--yes", *URL)
        assert refused.exit_code == 1
        assert "1 worker alive" in refused.stderr
        assert "say --force" in refused.stderr
        assert duetime("uninstall", "--dry-run", *URL).exit_code == 0
        assert "duetime_jobs" in tables(folder)
        assert duetime("uninstall", "--yes", "--force", *URL).exit_code == 0


@pytest.mark.parametrize(("url", "code"), [("", 2), ("sqlite:///none.db", 4)])
def test_what_is_no_database_is_refused(folder: Path, url: str, code: int) -> None:
    assert duetime("uninstall", url, "--yes").exit_code == code
    assert not (folder / "none.db").exists()
