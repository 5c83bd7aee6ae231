"""Turns the `.sql` files and what a database says differently into statements that are ready to run."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from duetime.stores.sql.driver import Statement
from duetime.stores.sql.statements.rewriting import rewrite

FOLDER = Path(__file__).parents[1]
"""Where the `.sql` files are."""
Blocks: TypeAlias = dict[tuple[str, str], str]
"""The bodies of statements and fragments, by kind and name."""
TABLES = (
    "jobs",
    "attempts",
    "schedules",
    "workers",
    "queues",
    "gates",
    "logs",
    "commands",
    "audit",
    "tasks",
    "credentials",
    "statistics",
    "meta",
    "locks",
)

_HEAD = re.compile(r"^-- (name|fragment): (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n?", re.MULTILINE)
_FRAGMENT = re.compile(r"\{(\w+)(?:\s+([^{}]*))?\}")
# A literal is skipped whole; `::` is a cast.
_PARAMETER = re.compile(r"'[^']*'|(?<![:\w]):([a-z_]+)")
_VALUE = re.compile(rf"{_PARAMETER.pattern}|\br\.([a-z_]+)")
_BATCH = re.compile(r"^FROM \{each rows: ([^{}]*)\} AS r\n", re.MULTILINE)
_RETURNING = re.compile(r"\nRETURNING .*\Z", re.DOTALL)


Columns: TypeAlias = Sequence[tuple[str, str]]
"""Names and types (`text`, `int`, `real`) of a batch, in the order of its arrays."""


ColumnTexts: TypeAlias = Mapping[tuple[str, str], str]
"""What columns hold, by table and column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The words of one database."""

    folder: str
    """Where its overrides and migrations are, below this package."""
    now: str
    """The store's clock in microseconds."""
    now_once: str
    """The same, worked out once for all rows; the planner cannot guess how much lies before it."""
    each: Callable[[str, Columns], str]
    """Reads the batch in a JSON parameter as a table."""
    locking: str
    """Locks the rows of a SELECT until the transaction ends."""
    current: str = ""
    """Has a SELECT read what is committed, also in a transaction that reads from a snapshot but writes to what is."""
    in_order: str = "JOIN"
    """Joins two tables of which the first is to be read first, where the planner has to be told."""
    by_key: str = ""
    """Insists on the primary key, behind the name of a table: who scans it instead waits for rows that others have locked."""
    skip_locked: str
    """Locks the rows of the table `{0}` in a SELECT and leaves out those that others have locked."""
    index: str
    """Insists on the index `{0}` of the table `{1}`, behind its name."""
    parameter: Callable[[str, int], str]
    """Writes the parameter with this name, which is the nth of its statement."""
    repeats: bool = False
    """Whether a parameter counts once for each place where it stands."""
    unrolled: frozenset[str] = frozenset()
    """The statements that are quicker when they get their batch row by row."""
    storing: tuple[str, str] = ("", "")
    """What stands before and behind a statement that stores jobs, new or not, so that it answers the store's clock."""
    stored_at: str = "{0}"
    """The clock `{0}` as such a statement notes it, where that is how its answer comes to carry it."""
    in_steps: bool = False
    """Whether it has neither UPDATE ... FROM, RETURNING nor ON CONFLICT."""
    commented: Callable[[str, ColumnTexts], str] = lambda text, _: text
    """Has the tables of a migration tell what their columns hold, where the database has a place for it."""
    words: tuple[tuple[str, str], ...] = ()
    """Single words that it knows by another name."""
    slow_on_conflict: bool = False
    """Whether an INSERT is much faster without ON CONFLICT."""
    claims_per_statement: bool
    """Whether one claim statement serves all queues; if not, there is one for each."""

    def fragments(self) -> Mapping[str, str]:
        """Return the fragments that need no argument."""
        return {
            "locking": self.locking,
            "current": self.current,
            "in_order": self.in_order,
            "by_key": self.by_key,
            "now": self.now,
            "now_once": self.now_once,
            "stored_at": self.stored_at.format(self.now),
            "stored_at_once": self.stored_at.format(self.now_once),
        }


class Statements:
    """Every statement the store runs, by name; each is written out when it is first asked for, as most workers need few."""

    def __init__(self, names: Collection[str], write: Callable[[str], Statement]) -> None:
        """`write` returns the statement of a name."""
        self._names = frozenset(names)
        self._write = write

    def __getattr__(self, name: str) -> Statement:
        """Return a statement; threads that ask at the same time get the same one."""
        if name not in vars(self).get("_names", ()):
            raise AttributeError(f"there is no statement {name}")
        return vars(self).setdefault(name, self._write(name))  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Statement]:
        """Return all of them, by name."""
        return (getattr(self, name) for name in sorted(self._names))


@cache
def load(dialect: Dialect, namespace: str) -> Statements:
    """Return the statements of a dialect for the tables of a namespace."""
    blocks: Blocks = {}
    # What a dialect has of its own comes last, and takes the place of what is shared.
    for file in (*files(), *(file for file in files(dialect.folder) if file.name != "hints.sql")):
        blocks |= parse(file.read_text("utf-8"))
    return build(blocks, dialect, namespace)


def build(blocks: Blocks, dialect: Dialect, namespace: str) -> Statements:
    """Return the statements of some blocks."""
    fill = PlaceholderFiller(dialect, namespace, _named("fragment", blocks))
    bodies = _named("name", blocks)
    return Statements(bodies, lambda name: _write(name, bodies[name], dialect, fill))


def load_hints(dialect: Dialect, namespace: str) -> Mapping[str, Statement]:
    """Return the statements of a dialect by which processes tell each other something, as they are written."""
    own = parse((FOLDER / dialect.folder / "hints.sql").read_text("utf-8"))
    shared = parse((FOLDER / "shared.sql").read_text("utf-8"))
    fill = PlaceholderFiller(dialect, namespace, _named("fragment", shared | own))
    return {name: compile_statement(name, fill(body), dialect) for name, body in _named("name", own).items()}


def files(*folder: str) -> list[Path]:
    """Return the `.sql` files in a folder."""
    return list(FOLDER.joinpath(*folder).glob("*.sql"))


def parse(text: str) -> Blocks:
    """Split a file at its `-- name:` and `-- fragment:` lines; comments go."""
    _, *parts = _HEAD.split(text)
    blocks = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return {(kind, name): _COMMENT.sub("", body).strip() for kind, name, body in blocks}


def fragments(dialect: Dialect) -> dict[str, str]:
    """Return the fragments that a dialect has of its own."""
    return _named("fragment", parse((FOLDER / dialect.folder / "overrides.sql").read_text("utf-8")))


def _named(wanted: str, blocks: Blocks) -> dict[str, str]:
    return {name: body for (kind, name), body in blocks.items() if kind == wanted}


def _write(name: str, body: str, dialect: Dialect, fill: PlaceholderFiller) -> Statement:
    if name in dialect.unrolled:
        return unroll(name, body, fill)
    if name.startswith("enqueue") and not name.endswith("fresh"):
        before, behind = dialect.storing
        body = f"{before}{body}{behind}"
    if not dialect.in_steps:
        return compile_statement(name, fill(body), dialect)
    steps = rewrite(body)
    texts = (steps.choice, steps.answer)
    choice, answer = [
        None if text is None else compile_statement(name, fill(text), dialect) for text in texts
    ]
    return compile_statement(name, fill(steps.change), dialect)._replace(choice=choice, answer=answer)


class PlaceholderFiller:
    """Replaces what stands in braces: table names, the dialect's words and shared fragments."""

    def __init__(self, dialect: Dialect, namespace: str, fragments: Mapping[str, str]) -> None:
        self._dialect = dialect
        self._words = {
            **fragments,
            **dialect.fragments(),
            # The last one is there only where hints are carried by rows.
            **{table: f"{namespace}_{table}" for table in (*TABLES, "hints")},
        }

    def __call__(self, text: str) -> str:
        """Return the text with all braces filled in, those inside fragments too."""
        return _FRAGMENT.sub(self._fill, text)

    def _fill(self, match: re.Match[str]) -> str:
        word, argument = match.groups()
        if word == "each":
            return self._each(argument)
        if word == "names":
            listed, _, text = argument.partition(": ")
            columns = _columns(self(self._words[listed]))
            return ", ".join((text or "$").replace("$", name) for name, _ in columns)
        if word == "skip_locked":
            return self._dialect.skip_locked.format(argument)
        if word == "index":
            name, _, table = argument.partition(" of ")
            return self(self._dialect.index.format(name, table or "jobs"))
        return self(self._words[word])

    def _each(self, argument: str) -> str:
        parameter, listed = argument.split(": ")
        first, *more = listed.split(", ", 1)
        # Columns of several statements have a name.
        columns = self(", ".join([self._words.get(first, first), *more]))
        return self._dialect.each(parameter, _columns(columns))


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
    before, columns, behind = _BATCH.split(body)
    order: list[str] = []

    def place(match: re.Match[str]) -> str:
        parameter = match[1] or match[2]
        if parameter is None:
            return match[0]
        order.append(parameter)
        return "?"

    sql = _VALUE.sub(place, fill(before + _RETURNING.sub("", behind)))
    return Statement(name, sql, tuple(order), tuple(name for name, _ in _columns(columns)))


def _columns(listed: str) -> list[tuple[str, str]]:
    return [(name, kind) for name, kind in (column.split() for column in listed.split(","))]
