"""Turns the `.sql` files and a dialect's overrides into statements that are ready to run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, NoReturn

from duetime.stores.sql.driver import Statement
from duetime.stores.sql.statements.dialect import Dialect

FOLDER = os.path.dirname(os.path.dirname(__file__))
"""Where the `.sql` files are; `importlib.resources` would tell as well, and take a megabyte of every worker."""
TABLES = ("jobs", "attempts", "schedules", "workers", "queues", "gates", "logs", "commands", "audit", "meta")
_HINT_TABLE = "hints"
"""A table of those databases alone that carry hints in rows."""

_HEAD = re.compile(r"^-- (name|fragment): (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n?", re.MULTILINE)
_FRAGMENT = re.compile(r"\{(\w+)(?:\s+([^{}]*))?\}")
# A literal is skipped whole; `::` is a cast.
_PARAMETER = re.compile(r"'[^']*'|(?<![:\w]):([a-z_]+)")
_VALUE = re.compile(rf"{_PARAMETER.pattern}|\br\.([a-z_]+)")
_BATCH = re.compile(r"^FROM \{each rows: ([^{}]*)\} AS r\n", re.MULTILINE)
_RETURNING = re.compile(r"\nRETURNING .*\Z", re.DOTALL)


class BadStatement(Exception):
    """A mistake in the `.sql` files."""


class Statements:
    """Every statement the store runs, written out when it is first asked for: most workers need a few of them.

    The names are listed for whoever reads and checks types, and so that a missing file or name is found at the start.
    """

    clock: Statement
    enqueue_one: Statement
    enqueue_one_fresh: Statement
    enqueue_alike: Statement
    enqueue_fresh: Statement
    enqueue_dated: Statement
    enqueue_dated_fresh: Statement
    enqueue: Statement
    enqueue_rich: Statement
    key_holders: Statement
    replace_keyed: Statement
    free_keys: Statement
    occurrence_ids: Statement
    claim: Statement
    take: Statement
    quote_blobs: Statement
    claims_under: Statement
    mark_started: Statement
    holders: Statement
    settle: Statement
    succeed: Statement
    settled_before: Statement
    add_attempts: Statement
    trim_attempts: Statement
    trim_logs: Statement
    note_progress: Statement
    add_logs: Statement
    drop_logs: Statement
    next_due: Statement
    limited_queues: Statement
    waiting_gates: Statement
    add_gates: Statement
    lock_gates: Statement
    lock_queues: Statement
    running_under: Statement
    at_gates: Statement
    in_queues: Statement
    take_limited: Statement
    note_gates: Statement
    note_queues: Statement
    idle_gates: Statement
    prune_gates: Statement
    note_moved: Statement
    forget_moved: Statement
    register: Statement
    pulse: Statement
    is_alive: Statement
    held_by: Statement
    retire: Statement
    peers: Statement
    bury: Statement
    forsaken: Statement
    expire: Statement
    send: Statement
    take_commands: Statement
    finish_command: Statement
    drop_commands: Statement
    commands: Statement
    commands_of: Statement
    prune_commands: Statement
    orphans: Statement
    adopt: Statement
    add_schedules: Statement
    change_schedules: Statement
    lock_planted: Statement
    withdraw: Statement
    withdraw_claimed: Statement
    rewind: Statement
    due_schedules: Statement
    resuming_schedules: Statement
    next_schedule: Statement
    fire: Statement
    fired_jobs: Statement
    delete_schedule: Statement
    lock_spans: Statement
    cut_spans: Statement
    add_entries: Statement
    noted: Statement
    prune_entries: Statement
    cancel: Statement
    snooze: Statement
    reclaim: Statement
    standing: Statement
    existing: Statement
    queues: Statement
    tally_waiting: Statement
    tally_gated: Statement
    tally_running: Statement
    tally_latest: Statement
    purgeable: Statement
    purgeable_gated: Statement
    pause_queue: Statement
    resume_queue: Statement
    set_queue_limit: Statement
    prunable: Statement
    latest_occurrences: Statement
    forget: Statement
    forget_attempts: Statement
    prune_attempts: Statement
    prune_logs: Statement
    prune_jobs: Statement
    prune_workers: Statement
    get: Statement
    find: Statement
    find_unsuccessful: Statement
    find_newest: Statement
    find_live: Statement
    find_of_schedule: Statement
    upcoming: Statement
    attempts: Statement
    logs: Statement
    schedules: Statement
    code_schedules: Statement
    get_schedules: Statement
    occurrences: Statement
    past_occurrences: Statement
    entries: Statement
    entries_before: Statement
    workers: Statement
    paused_queues: Statement
    outlook: Statement
    limits_on: Statement
    queue_limits: Statement
    counts: Statement
    whole_queues: Statement
    whole_gates: Statement
    whole_workers: Statement
    whole_commands: Statement
    whole_jobs: Statement
    whole_attempts: Statement
    whole_logs: Statement
    whole_schedules: Statement
    whole_entries: Statement
    put_queues: Statement
    put_gates: Statement
    put_workers: Statement
    put_commands: Statement
    put_jobs: Statement
    put_attempts: Statement
    put_logs: Statement
    put_schedules: Statement
    put_entries: Statement
    remove_queues: Statement
    remove_gates: Statement
    remove_workers: Statement
    remove_commands: Statement
    remove_jobs: Statement
    remove_schedules: Statement
    remove_entries: Statement
    has_schema: Statement
    migration_lock: Statement
    schema_version: Statement
    store_id: Statement

    def __init__(self, write: Callable[[str], Statement], *, paired: bool = True) -> None:
        """`write` returns the statement of a name; `paired`: `enqueue_alike` reads an object rather than a batch."""
        vars(self).update(_write=write, _paired=paired)

    def is_paired(self) -> bool:
        """Whether jobs that fall due together are handed over as one object of their arguments by id."""
        paired: bool = vars(self)["_paired"]
        return paired

    if not TYPE_CHECKING:  # To it, the names above are all that there is.

        def __getattr__(self, name: str) -> Statement:
            if name not in Statements.__annotations__:
                raise AttributeError(f"there is no statement {name}")
            # Threads that ask at the same time get the same one.
            return vars(self).setdefault(name, self._write(name))

    def __setattr__(self, name: str, _: object, /) -> NoReturn:
        message = f"{name} cannot be set: all stores of a dialect and namespace share their statements"
        raise AttributeError(message)


@cache
def load(dialect: Dialect, namespace: str) -> Statements:
    """Return the statements of a dialect for the tables of a namespace."""
    shared = parse("".join(read(name) for name in files()))
    own = parse(read(dialect.folder, "overrides.sql"))
    return build({**shared, **own}, dialect, namespace)


def load_hints(dialect: Dialect, namespace: str) -> dict[str, Statement]:
    """Return the statements of a dialect by which processes tell each other something."""
    blocks = parse(read("shared.sql") + read(dialect.folder, "hints.sql"))
    fill = PlaceholderFiller(
        dialect, namespace, {name: body for (kind, name), body in blocks.items() if kind == "fragment"}
    )
    named = parse(read(dialect.folder, "hints.sql"))
    return {
        name: compile_statement(name, fill(body), dialect)
        for (kind, name), body in named.items()
        if kind == "name"
    }


def files(*folder: str) -> list[str]:
    """Return the names of the `.sql` files in a folder."""
    return [name for name in os.listdir(os.path.join(FOLDER, *folder)) if name.endswith(".sql")]


def read(*path: str) -> str:
    """Return the text of a `.sql` file."""
    with open(os.path.join(FOLDER, *path), encoding="utf-8") as file:
        return file.read()


def parse(text: str) -> dict[tuple[str, str], str]:
    """Split a file at its `-- name:` and `-- fragment:` lines; comments go."""
    _, *parts = _HEAD.split(text)
    blocks: dict[tuple[str, str], str] = {}
    for kind, name, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if (kind, name) in blocks:
            message = f"{kind} {name} is there twice"
            raise BadStatement(message)
        blocks[kind, name] = _COMMENT.sub("", body).strip()
    return blocks


def build(blocks: Mapping[tuple[str, str], str], dialect: Dialect, namespace: str) -> Statements:
    """Check that the blocks are the ones the store knows; each is filled in when it is asked for."""
    named = {name: body for (kind, name), body in blocks.items() if kind == "name"}
    wanted = Statements.__annotations__.keys()
    if named.keys() != wanted:
        message = (
            f"statements missing: {sorted(wanted - named.keys())}, unknown: {sorted(named.keys() - wanted)}"
        )
        raise BadStatement(message)
    fragments = {name: body for (kind, name), body in blocks.items() if kind == "fragment"}
    fill = PlaceholderFiller(dialect, namespace, fragments)
    return Statements(lambda name: _write(name, named[name], dialect, fill), paired=dialect.pairs is not None)


def _write(name: str, body: str, dialect: Dialect, fill: PlaceholderFiller) -> Statement:
    if name in dialect.unrolled:
        return unroll(name, body, fill)
    if name.startswith("enqueue"):
        before, behind = dialect.storing
        body = f"{before}{body}{behind}"
    if not dialect.in_steps:
        return compile_statement(name, fill(body), dialect)
    # Here, since most workers never need it.
    from duetime.stores.sql.statements.rewriting import rewrite

    steps = rewrite(body)
    choice, answer = [
        None if text is None else compile_statement(name, fill(text), dialect)
        for text in (steps.choice, steps.answer)
    ]
    return compile_statement(name, fill(steps.change), dialect)._replace(choice=choice, answer=answer)


class PlaceholderFiller:
    """Replaces what stands in braces: table names, the dialect's words and shared fragments."""

    def __init__(self, dialect: Dialect, namespace: str, fragments: Mapping[str, str]) -> None:
        self._dialect = dialect
        self._words = {
            **fragments,
            **dialect.fragments(),
            **{table: f"{namespace}_{table}" for table in (*TABLES, _HINT_TABLE)},
        }

    def __call__(self, text: str) -> str:
        """Return the text with all braces filled in, those inside fragments too."""
        return _FRAGMENT.sub(self._fill, text)

    def _fill(self, match: re.Match[str]) -> str:
        word, argument = match.groups()
        if word == "each":
            return self._each(argument)
        if word == "skip_locked":
            return self._dialect.skip_locked.format(argument)
        if word == "index":
            name, _, table = argument.partition(" of ")
            return self(self._dialect.index.format(name, table or "jobs"))
        if argument or word not in self._words:
            message = f"nothing is known to fill {match.group()} with"
            raise BadStatement(message)
        return self(self._words[word])

    def _each(self, argument: str) -> str:
        parameter, _, listed = argument.partition(":")
        return self._dialect.each(parameter, _columns(listed))


def compile_statement(name: str, sql: str, dialect: Dialect) -> Statement:
    """Write the named parameters as the database wants them, and note their order."""
    order: list[str] = []

    def place(match: re.Match[str]) -> str:
        parameter = match.group(1)
        if parameter is None:
            return match.group()
        if dialect.repeats or parameter not in order:
            order.append(parameter)
        return dialect.parameter(parameter, order.index(parameter) + 1)

    for word, other in dialect.words:
        sql = sql.replace(word, other)
    return Statement(name, _PARAMETER.sub(place, sql), tuple(order))


def unroll(name: str, body: str, fill: PlaceholderFiller) -> Statement:
    """Turn an UPDATE from a batch into one for a single row, with the columns of the batch as parameters."""
    batch = _BATCH.search(body)
    if batch is None:
        message = f"{name} has no batch to take row by row"
        raise BadStatement(message)
    columns = [name for name, _ in _columns(batch[1])]
    order: list[str] = []

    def place(match: re.Match[str]) -> str:
        parameter = match[1] or match[2]
        if parameter is None:
            return match[0]
        order.append(parameter)
        return "?"

    sql = _VALUE.sub(place, fill(_RETURNING.sub("", _BATCH.sub("", body))))
    return Statement(name, sql, tuple(order), tuple(columns))


def _columns(listed: str) -> list[tuple[str, str]]:
    return [(name, kind) for name, kind in (column.split() for column in listed.split(","))]
