"""Rows with values that this version does not write: edited by hand, or written by a later version."""

from __future__ import annotations

import typing
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, get_args, get_origin

from duetime.model.job import Claim
from duetime.model.text import shown

Record = TypeVar("Record")


def row_problem(record: object) -> str | None:
    """Say which columns of a record are of other types than they can be; `None` for a sound one, after a short look."""
    found = _shape_of(record).misfits(record)
    return ", ".join(f"{name} is {shown(getattr(record, name))}" for name in found) or None


def with_blanks(record: Record) -> Record:
    """Return a record whose columns are of the types that they can be: what is not is blank."""
    shape = _shape_of(record)
    if not (found := shape.misfits(record)):
        return record
    kind: type[Any] = type(record)
    made: Record = kind(
        **{
            name: _blank(allowed) if name in found else getattr(record, name)
            for name, allowed in shape.expected.items()
        }
    )
    return made


def checked_claim(claim: Claim) -> Claim:
    """Return a claim that can be decided about; one of an odd row says so, to be ended as undecodable."""
    problem = row_problem(claim)
    return claim if problem is None else with_blanks(claim)._replace(problem=unreadable_row(problem))


def unreadable_row(problem: str) -> str:
    """Say that a row cannot be read, and why."""
    return f"its row cannot be read: {problem}"


class _Shape:
    """The types that the columns of a kind of records can have."""

    def __init__(self, kind: type[Any]) -> None:
        self.expected = {name: _plain(hint) for name, hint in typing.get_type_hints(kind).items()}
        self._values: attrgetter[tuple[Any, ...]] = attrgetter(*self.expected)
        self._known: dict[tuple[type, ...], tuple[str, ...]] = {}

    def misfits(self, record: object) -> tuple[str, ...]:
        """Return the names of the columns that are of other types; most records have the types of one before."""
        types = tuple(map(type, self._values(record)))
        if types not in self._known:
            pairs = zip(self.expected.items(), types, strict=True)
            self._known[types] = tuple(name for (name, allowed), one in pairs if not issubclass(one, allowed))
        return self._known[types]


_SHAPES: Final[dict[type, _Shape]] = {}


def _shape_of(record: object) -> _Shape:
    kind: type[Any] = type(record)
    if kind not in _SHAPES:
        _SHAPES[kind] = _Shape(kind)
    return _SHAPES[kind]


def _plain(hint: Any) -> tuple[type, ...]:
    """Return the types that values of an annotation have."""
    if get_origin(hint) in (typing.Union, UnionType):
        return tuple(one for part in get_args(hint) for one in _plain(part))
    if get_origin(hint) is typing.Literal:
        return (str,)
    return (float, int) if hint is float else (get_origin(hint) or hint,)


def _blank(allowed: tuple[type, ...]) -> object:
    return None if NoneType in allowed else allowed[0]()
