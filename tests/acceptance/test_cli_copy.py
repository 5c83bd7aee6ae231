"""`duetime copy`."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from duetime.cli.database import _progress_bar
from duetime.model.stored.copy import RecordKind
from tests.acceptance.kit import URL, duetime, from_json

HERE, THERE = "sqlite:///jobs.db", "sqlite:///there.db"


@pytest.fixture(autouse=True)
def _jobs(folder: object) -> None:
    for name in ("ann", "bob"):
        duetime("enqueue", "shop:scheduler", "shop.greet", f"name={name}")


def test_everything_is_copied_and_counted() -> None:
    result = duetime("copy", HERE, THERE)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["KIND", "RECORDS", "CHECKSUM"]
    assert [line.split()[:2] for line in lines if line.startswith("jobs")] == [["jobs", "2"]]
    assert lines[-2] == "source and target are the same; 2 records written"
    assert lines[-1].startswith("workers and producers are refused on the source from now on")
    assert from_json("jobs", "list", "--url", THERE) == from_json("jobs", "list", *URL)


@pytest.mark.covers("copy-source-runs-on")
def test_a_source_that_was_copied_says_so_until_it_is_opened_again() -> None:
    assert duetime("copy", HERE, THERE, "--by", "me").exit_code == 0
    told = rf"{HERE} was copied to {THERE} at .* by me, and the work goes on there"
    for refused in (("worker", "shop:scheduler"), ("enqueue", "shop:scheduler", "shop.greet", "name=eve")):
        result = duetime(*refused)
        assert result.exit_code == 4
        assert re.search(f"{told}; change the URL, or run `duetime reopen`", result.stderr)
    assert len(from_json("jobs", "list", *URL)) == 2, "it can be read"
    found = duetime("doctor", HERE)
    assert found.exit_code == 1
    assert re.search(rf"moved +FAILED +{told}. Fix: change the URL, or run `duetime reopen`", found.stdout)
    assert "no worker fires" not in found.stdout
    assert re.match(f"open again, though {HERE} was copied", duetime("reopen", HERE).stdout)
    assert from_json("reopen", "--url", HERE) == {"reopened": False, "moved": None}
    assert duetime("enqueue", "shop:scheduler", "shop.greet", "name=eve").exit_code == 0


def test_a_note_names_a_namespace_that_is_not_the_usual_one() -> None:
    duetime("copy", HERE, HERE, "--target-namespace", "other")
    result = duetime("enqueue", "shop:scheduler", "shop.greet", "name=eve")
    assert f"{HERE} was copied to {HERE} (other) at" in result.stderr


def test_a_dry_run_writes_nothing_and_needs_no_tables() -> None:
    dry = from_json("copy", HERE, THERE, "--dry-run")
    assert (dry["dry_run"], dry["written"], dry["kinds"]["jobs"]["records"]) == (True, 0, 2)
    assert not Path("there.db").exists()
    assert duetime("migrate", "--url", THERE).exit_code == 0
    assert from_json("copy", HERE, THERE, "--dry-run") == dry
    wet = from_json("copy", HERE, THERE)
    assert wet["kinds"] == dry["kinds"]


def test_a_copy_goes_to_another_namespace_of_the_same_database() -> None:
    assert from_json("copy", HERE, HERE, "--target-namespace", "other")["written"] == 2
    copied = from_json("jobs", "list", *URL, "--namespace", "other")
    assert copied == from_json("jobs", "list", *URL)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (HERE, "are the same store; name two different ones"),
        ("nonsense", "a database URL looks like"),
        ("oracle://x", "oracle:// is not a database we know"),
    ],
)
def test_a_target_that_will_not_do_is_refused(target: str, message: str) -> None:
    result = duetime("copy", HERE, target)
    assert result.exit_code != 0
    assert message in result.stderr


@pytest.mark.parametrize("side", ["jobs.db", "there.db"])
def test_tables_of_a_newer_version_are_refused_on_either_side(side: str) -> None:
    duetime("migrate", "--url", THERE)
    with closing(sqlite3.connect(side)) as connection, connection:
        connection.execute(
            "INSERT INTO duetime_meta (version, name, code, applied_at) VALUES (99, 'x', 'x', 0)"
        )
    result = duetime("copy", HERE, THERE)
    assert result.exit_code == 4
    assert "upgrade duetime" in result.stderr
    with closing(sqlite3.connect("there.db")) as connection:
        assert connection.execute("SELECT count(*) FROM duetime_jobs").fetchone() == (0,)


def test_a_source_that_is_not_there_is_told_as_that() -> None:
    result = duetime("copy", "sqlite:///job.db", THERE)
    assert result.exit_code == 4
    assert "there is no file job.db; check the URL" in result.stderr
    result = duetime("copy", HERE, THERE, "--namespace", "shop")
    assert result.exit_code == 1
    assert f"{HERE} has nothing of 'shop' in it; check SOURCE and --namespace" in result.stderr
    assert [path for path in ("job.db", "there.db") if Path(path).exists()] == []


@pytest.mark.parametrize("urls", [("", THERE), (HERE, "")], ids=["source", "target"])
def test_an_empty_url_is_refused_and_stands_for_no_default(urls: tuple[str, str]) -> None:
    result = duetime("copy", *urls)
    assert result.exit_code == 2
    assert "this one has no ://" in result.stderr
    assert [path for path in ("duetime.db", "there.db") if Path(path).exists()] == []


def test_a_password_is_not_shown() -> None:
    result = duetime("copy", HERE, "postgresql://me:secret@localhost:1/app")
    assert result.exit_code == 4
    assert "secret" not in result.stderr


@pytest.mark.covers("password-in-message")
def test_no_secret_of_a_url_is_stored(postgres_url: str) -> None:
    target = f"{postgres_url}?sslpassword=hidden"
    assert duetime("copy", HERE, target).exit_code == 0
    said = duetime("worker", "shop:scheduler").stderr
    assert "?sslpassword=*** at " in said
    assert duetime("copy", target, THERE).exit_code == 0
    with closing(sqlite3.connect("jobs.db")) as here, closing(sqlite3.connect("there.db")) as there:
        assert "hidden" not in "\n".join((*here.iterdump(), *there.iterdump()))


def test_somebody_at_a_terminal_sees_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with _progress_bar(10) as progress:
        progress(RecordKind.JOBS, 5)
        progress(RecordKind.AUDIT, 7)
    assert "50%" in capsys.readouterr().err
