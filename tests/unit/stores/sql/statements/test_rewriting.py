"""Statements for a database that has neither UPDATE ... FROM, RETURNING nor ON CONFLICT."""

from __future__ import annotations

import re
from typing import Any

import pytest

from duetime.stores.sql.driver import Query, Script, Statement
from duetime.stores.sql.statements.loader import TABLES, files, parse
from duetime.stores.sql.statements.rewriting import PRIMARY_KEYS, RewrittenStatement, rewrite, split, unfold

NOW = 1_000
CHOICE = Statement("cancel", "choose", ("rows",))
ANSWER = Statement("cancel", "answer", ("chosen",))
CHANGE = Statement("cancel", "change", ("chosen",), choice=CHOICE, answer=ANSWER)


def shared() -> dict[str, str]:
    text = "".join(file.read_text() for file in files())
    return {name: body for (kind, name), body in parse(text).items() if kind == "name"}


def test_an_update_from_a_batch_becomes_a_join_that_says_whose_columns_it_sets() -> None:
    body = "UPDATE {queues} SET starts = r.starts, most = coalesce(r.most, 1)\nFROM {each rows: name text} AS r\nWHERE {queues}.name = r.name"
    assert rewrite(body) == RewrittenStatement(
        "UPDATE {each rows: name text} AS r\n{in_order} {queues} {by_key} ON true\n"
        "SET  {queues}.starts = r.starts, {queues}.most = coalesce(r.most, 1)\nWHERE {queues}.name = r.name"
    )


def test_a_change_that_answers_chooses_changes_and_reads() -> None:
    steps = rewrite("UPDATE {workers} SET state = 'dead'\nWHERE state = 'alive'\nRETURNING id, host")
    assert steps.choice == "SELECT {workers}.id, {now}\nFROM {workers}\nWHERE state = 'alive'\n{locking}"
    assert steps.change.startswith(
        "UPDATE {each chosen: key_0 text} AS chosen {in_order} {workers} {by_key} ON"
    )
    assert steps.answer is not None
    assert steps.answer.startswith("SELECT id, host\nFROM {each chosen")


def test_what_is_deleted_by_a_subquery_is_chosen_first_and_known_by_its_keys() -> None:
    steps = rewrite(
        "DELETE FROM {jobs} WHERE id IN (SELECT r.id FROM {each rows: id text} AS r)\nRETURNING id"
    )
    assert steps.choice == (
        "SELECT {jobs}.id, {now}\nFROM {each rows: id text} AS r\n{in_order} {jobs} {by_key} ON true\n"
        "WHERE {jobs}.id = r.id\n{locking}"
    )
    assert steps.change.startswith("DELETE {jobs} FROM {each chosen")
    assert steps.answer is None


def test_what_is_deleted_by_another_column_than_its_key_is_looked_for_as_the_server_likes() -> None:
    listed = "worker IN (SELECT r.id FROM {each rows: id text} AS r)"
    steps = rewrite(f"DELETE FROM {{commands}} WHERE {listed}")
    assert steps.choice == f"SELECT {{commands}}.id, {{now}}\nFROM {{commands}}\nWHERE {listed}\n{{locking}}"


@pytest.mark.parametrize(
    "body",
    [
        "SELECT 1",
        "UPDATE {queues} SET most = 1 WHERE name = :name",
        "DELETE FROM {queues} WHERE name = :name",
    ],
)
def test_what_every_database_understands_stays_as_it_is(body: str) -> None:
    assert rewrite(body) == RewrittenStatement(body)


@pytest.mark.parametrize("name", sorted(shared()))
def test_nothing_is_left_that_such_a_database_does_not_know(name: str) -> None:
    steps = rewrite(shared()[name])
    for text in filter(None, steps):
        assert "ON CONFLICT" not in text
        assert "excluded." not in text
        assert "RETURNING" not in text
        if text.startswith("UPDATE"):
            assert "\nFROM" not in text


@pytest.mark.parametrize("name", sorted(shared()))
def test_a_change_has_no_subquery_of_the_table_that_it_changes(name: str) -> None:
    # MySQL refuses it.
    change = rewrite(shared()[name]).change
    if changed := re.match(r"(?:UPDATE|DELETE FROM) (\{\w+\})|.*?\{in_order\} (\{\w+\})", change, re.DOTALL):
        table = changed[1] or changed[2]
        assert not re.search(rf"(?:FROM|JOIN|\{{in_order\}}) {table}", change[changed.end() :])


@pytest.mark.parametrize("name", sorted(shared()))
def test_no_column_is_read_behind_the_place_where_it_is_set(name: str) -> None:
    # Such databases set columns from left to right, and would read what was set.
    change = rewrite(shared()[name]).change
    found = re.search(
        r"(?:\bSET|DUPLICATE KEY UPDATE)\s+(.*?)(?:\s+^WHERE .*)?\Z", change, re.DOTALL | re.MULTILINE
    )
    done: list[str] = []
    for assignment in split(found[1]) if found else []:
        column, _, value = assignment.strip().partition(" = ")
        own = re.sub(r"'[^']*'|:\w+|\br\.\w+|VALUES\(\w+\)", "", value)
        assert not [before for before in done if re.search(rf"\b{before}\b", own)]
        done.append(column.rpartition(".")[2])


def test_an_insert_that_answers_is_told_before_what_is_new() -> None:
    steps = rewrite(
        "INSERT INTO {gates} (name)\nSELECT r.name\nFROM {each rows: name text} AS r\nWHERE true\n"
        "ON CONFLICT (name) DO NOTHING\nRETURNING name"
    )
    assert steps == RewrittenStatement(
        "INSERT INTO {gates} (name)\nSELECT r.name\nFROM {each rows: name text} AS r",
        "SELECT r.name, {now}\nFROM {each rows: name text} AS r\n"
        "WHERE NOT EXISTS (SELECT 1 FROM {gates} AS there WHERE there.name = r.name)",
    )


def test_one_that_always_answers_is_told_the_time_before() -> None:
    steps = rewrite("INSERT INTO {workers} (id)\nVALUES (:id)\nRETURNING {now}")
    assert steps == RewrittenStatement(
        "INSERT INTO {workers} (id)\nVALUES (:id)", "SELECT {now}", "SELECT {now}"
    )


def test_a_change_that_needs_nothing_of_its_batch_goes_by_what_was_chosen() -> None:
    steps = rewrite(
        "UPDATE {jobs} SET fence = {jobs}.fence + 1\nFROM {each rows: id text} AS r\nWHERE {named}\nRETURNING {jobs}.id"
    )
    assert "rows" not in steps.change


def test_every_table_has_a_key() -> None:
    assert set(PRIMARY_KEYS) == set(TABLES)


def run(script: Script[Any], answers: list[list[Any]]) -> tuple[list[str], Any]:
    """Play a script with answers made up beforehand; return what it asked for and what it came to."""
    asked: list[str] = []
    try:
        query = next(script)
        while True:
            asked.append(query.statement.sql)
            query = script.send(answers.pop(0))
    except StopIteration as stop:
        return asked, stop.value


def cancel() -> Script[list[Any]]:
    return (yield Query(CHANGE, {"rows": "[]"}))


def test_steps_outside_of_a_transaction_get_one_of_their_own() -> None:
    answers: list[list[Any]] = [[], [("a", NOW)], [], [("a", "cancelled")], []]
    asked, answer = run(unfold(cancel(), within=False), answers)
    assert asked == ["BEGIN", "choose", "change", "answer", "COMMIT"]
    assert answer == [("a", "cancelled")]


def test_steps_inside_of_a_transaction_leave_it_open() -> None:
    asked, _ = run(unfold(cancel(), within=True), [[("a", NOW)], [], [("a", "cancelled")]])
    assert asked == ["choose", "change", "answer"]


def test_where_nothing_matches_nothing_is_changed() -> None:
    asked, answer = run(unfold(cancel(), within=True), [[]])
    assert (asked, answer) == (["choose"], [])


def test_all_steps_go_by_the_moment_of_the_first() -> None:
    script = unfold(cancel(), within=True)
    next(script)
    changing = script.send([("a", NOW), ("b", NOW)])
    assert changing.params["now"] == NOW
    assert changing.params["chosen"] == '[["a"],["b"]]'
    assert script.send([]).params["now"] == NOW


def test_a_batch_that_names_its_rows_by_their_keys_is_cut_down_to_those_chosen() -> None:
    def settle() -> Script[list[Any]]:
        return (yield Query(CHANGE._replace(params=("rows",)), {"rows": '[["a",1],["b",2]]'}))

    script = unfold(settle(), within=True)
    next(script)
    assert script.send([("b", NOW)]).params["rows"] == '[["b",2]]'
