"""`duetime copy`."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from duetime.cli import copy
from duetime.model.whole import Kind
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
    assert lines[-2] == "source and target are the same; 2 record(s) written"
    assert lines[-1].startswith("start no worker on the source any more")
    assert from_json("jobs", "list", "--url", THERE) == from_json("jobs", "list", *URL)


def test_a_dry_run_writes_nothing_and_needs_no_tables() -> None:
    dry = from_json("copy", HERE, THERE, "--dry-run")
    assert (dry["dry_run"], dry["written"], dry["kinds"]["jobs"]["records"]) == (True, 0, 2)
    assert duetime("migrate", "--check", "--url", THERE).exit_code == 1
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


@pytest.mark.parametrize(("version", "message"), [(3, "duetime migrate"), (99, "upgrade duetime")])
@pytest.mark.parametrize("side", ["jobs.db", "there.db"])
def test_tables_of_another_version_are_refused_on_either_side(side: str, version: int, message: str) -> None:
    duetime("migrate", "--url", THERE)
    with closing(sqlite3.connect(side)) as connection, connection:
        connection.execute("DELETE FROM duetime_meta WHERE version > 3")
        connection.execute(
            "INSERT INTO duetime_meta (version, name, code, applied_at) VALUES (?, 'x', 'x', 0) "
            "ON CONFLICT DO NOTHING",
            (version,),
        )
    result = duetime("copy", HERE, THERE)
    assert result.exit_code == 4
    assert message in result.stderr
    with closing(sqlite3.connect("there.db")) as connection:
        assert connection.execute("SELECT count(*) FROM duetime_jobs").fetchone() == (0,)


def test_a_source_that_is_not_there_is_told_as_that() -> None:
    result = duetime("copy", "sqlite:///job.db", THERE)
    assert result.exit_code == 1
    assert "sqlite:///job.db has nothing of 'duetime' in it; check SOURCE" in result.stderr


def test_a_password_is_not_shown() -> None:
    result = duetime("copy", HERE, "postgresql://me:secret@localhost:1/app")
    assert result.exit_code == 4
    assert "secret" not in result.stderr


def test_somebody_at_a_terminal_sees_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with copy._bar(10) as progress:
        progress(Kind.JOBS, 5)
        progress(Kind.AUDIT, 7)
    assert "50%" in capsys.readouterr().err
