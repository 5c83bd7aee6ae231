from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import duetime.stores.sql
from duetime.stores.sql.driver import Statement
from duetime.stores.sql.mariadb.dialect import MARIADB
from duetime.stores.sql.postgres.dialect import POSTGRES
from duetime.stores.sql.schema import migrations
from duetime.stores.sql.sqlite.dialect import SQLITE
from duetime.stores.sql.statements.loader import (
    Dialect,
    PlaceholderFiller,
    Statements,
    compile_statement,
    files,
    load,
    parse,
    unroll,
)

HOME = Path(duetime.stores.sql.__file__).parent
DIALECTS = pytest.mark.parametrize("dialect", [SQLITE, POSTGRES], ids=["sqlite", "postgres"])


def statements(dialect: Dialect, namespace: str = "duetime") -> Iterator[Statement]:
    return iter(load(dialect, namespace))


def test_a_statement_is_written_out_once_when_it_is_first_asked_for() -> None:
    written: list[str] = []

    def write(name: str) -> Statement:
        written.append(name)
        return Statement(name, "SELECT 1", ())

    sql = Statements(["claim"], write)
    assert written == []
    assert sql.claim is sql.claim
    assert written == ["claim"]


def test_a_statement_that_nobody_knows_is_not_there() -> None:
    with pytest.raises(AttributeError, match="surprise"):
        load(SQLITE, "duetime").surprise  # noqa: B018


@DIALECTS
def test_every_brace_is_filled(dialect: Dialect) -> None:
    for statement in statements(dialect):
        assert "{" not in statement.sql, statement.name


@DIALECTS
def test_a_namespace_is_in_every_table_name(dialect: Dialect) -> None:
    for statement in statements(dialect, "billing"):
        assert "duetime" not in statement.sql, statement.name


@pytest.mark.parametrize("dialect", [SQLITE, POSTGRES, MARIADB], ids=["sqlite", "postgres", "mariadb"])
def test_every_statement_is_used_and_every_one_that_is_used_is_there(dialect: Dialect) -> None:
    scripts = "\n".join(path.read_text() for path in HOME.rglob("*.py"))
    used = set(re.findall(r"(?<![\w.])(?:self\._)?sql\.(\w+)\b(?!\()", scripts))
    assert {statement.name for statement in load(dialect, "duetime")} == used


def test_no_statement_hides_in_python() -> None:
    told = re.compile(r'"(?:SELECT|INSERT|UPDATE|DELETE|WITH) ')
    files = [*HOME.glob("*.py"), *HOME.glob("sqlite/*.py")]
    assert [path.name for path in files if path.name != "dialect.py" and told.search(path.read_text())] == []


FILES = [file for file in HOME.rglob("*.sql") if file.parent.name != "migrations"]


LONG = 12
"""The lines from which on a statement does not explain itself."""


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(HOME)))
def test_every_file_and_every_long_statement_say_what_they_are_for(file: Path) -> None:
    opening, *parts = re.split(r"^-- (?:name|fragment): (\w+)\n", file.read_text(), flags=re.MULTILINE)
    assert opening.startswith("-- ")
    assert parts
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        assert body.startswith("-- ") or len(body.strip().splitlines()) < LONG, name


def test_parameters_become_numbers_where_the_database_wants_them() -> None:
    statement = compile_statement("x", "SELECT :b::bigint, ':a', :a, :b", POSTGRES)
    assert statement[:3] == ("x", "SELECT $1::bigint, ':a', $2, $1", ("b", "a"))


def test_parameters_are_told_by_their_places_where_numbers_are_taken_for_names() -> None:
    statement = compile_statement("x", "SELECT :b, ':a', :a, :b", SQLITE)
    assert statement[:3] == ("x", "SELECT ?, ':a', ?, ?", ("b", "a", "b"))


def test_parameters_keep_their_names_where_the_database_wants_those() -> None:
    statement = compile_statement("x", "SELECT :b, ':a', :a, :b", MARIADB)
    assert statement[:3] == ("x", "SELECT %(b)s, ':a', %(a)s, %(b)s", ("b", "a"))


def test_a_batch_is_a_table_with_the_columns_that_were_declared() -> None:
    text = "SELECT r.id FROM {each rows: id text, fence int} AS r"
    assert PlaceholderFiller(SQLITE, "n", {})(text) == (
        "SELECT r.id FROM (SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS fence "
        "FROM json_each(:rows)) AS r"
    )
    assert PlaceholderFiller(POSTGRES, "n", {})(text) == (
        "SELECT r.id FROM (SELECT r.value ->> 0 AS id, (r.value ->> 1)::bigint AS fence "
        "FROM jsonb_array_elements(:rows::text::jsonb) AS r (value) WHERE jsonb_typeof(r.value) = 'array') AS r"
    )


def test_the_names_of_listed_columns_can_be_put_into_a_text() -> None:
    fill = PlaceholderFiller(SQLITE, "n", {"few": "id text, fence int", "more": "{few}, note text"})
    assert fill("SELECT {names more} FROM {jobs}") == "SELECT id, fence, note FROM n_jobs"
    assert fill("SET {names few: $ = r.$}") == "SET id = r.id, fence = r.fence"


@pytest.mark.parametrize(
    ("dialect", "word"), [(SQLITE, "WITHOUT ROWID"), (POSTGRES, 'COLLATE "C"'), (MARIADB, "ENGINE InnoDB")]
)
def test_a_dialect_has_the_shared_tables_in_its_words_unless_it_has_its_own(
    dialect: Dialect, word: str
) -> None:
    [step] = migrations(dialect, "billing")
    assert step.name == "first"
    assert word in step.text
    assert "CREATE TABLE" in step.text
    assert "{code}" not in step.text


def test_a_statement_can_be_unrolled_to_take_its_batch_row_by_row() -> None:
    body = "UPDATE {jobs} SET a = r.a, b = :b, c = 'r.c'\nFROM {each rows: id text, a int} AS r\nWHERE id = r.id\nRETURNING id"
    assert unroll("x", body, PlaceholderFiller(SQLITE, "n", {})) == Statement(
        "x", "UPDATE n_jobs SET a = ?, b = ?, c = 'r.c'\nWHERE id = ?", ("a", "b", "id"), ("id", "a")
    )


def test_an_unknown_brace_is_refused() -> None:
    with pytest.raises(KeyError, match="job"):
        PlaceholderFiller(SQLITE, "n", {})("SELECT * FROM {job}")


def test_no_name_is_there_twice() -> None:
    heads = re.findall(
        r"^-- (name|fragment): (\w+)$", "".join(file.read_text() for file in files()), re.MULTILINE
    )
    assert len(heads) == len(set(heads))
    assert len(parse((HOME / "sqlite" / "overrides.sql").read_text())) == len(
        re.findall(r"^-- (?:name|fragment): ", (HOME / "sqlite" / "overrides.sql").read_text(), re.MULTILINE)
    )
