"""The names of locks, how the arguments of a job fill one in, and what comes of a try to take one."""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from duetime.errors import InvalidName, InvalidOption
from duetime.model.text import MAX_NAME, check_text, shown
from duetime.model.time import Micros


class Attempt(NamedTuple):
    """What came of one try to take a lock."""

    fence: int | None
    """The new owner's; `None` while another one holds it."""
    left: Micros
    """How long until the owner's deadline."""


@dataclass(frozen=True, slots=True)
class LockTemplate:
    """The name of a lock, such as `reindex:{tenant}`, with parameters of a task in braces."""

    text: str
    parameters: tuple[str, ...]

    def fill(self, value_of: Callable[[str], str]) -> str:
        """Return the name for one job, given each argument as JSON; raise `InvalidName` if there can be none."""
        values = {name: self._plain(name, value_of(name)) for name in self.parameters}
        return check_lock_name(self.text.format_map(values))

    def _plain(self, parameter: str, value: str) -> str:
        found = json.loads(value)
        if isinstance(found, bool) or not isinstance(found, str | int):
            raise InvalidName(
                f"lock={self.text!r} cannot be filled in: {parameter} is {value:.80}; use text, a whole number, or what JSON "
                "writes as text"
            )
        return str(found)


def lock_template(text: str | None) -> LockTemplate | None:
    """Check what a user wrote for a task."""
    if text is None:
        return None
    check_text(text, what="lock")
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError as error:
        raise _not_a_template(text, str(error)) from None
    for _, parameter, spec, conversion in parts:
        if parameter is not None and (not parameter.isidentifier() or spec or conversion):
            raise _not_a_template(
                text, f"what stands in braces must be the name of a parameter, not {shown(parameter)}"
            )
    template = LockTemplate(text, tuple(parameter for _, parameter, *_ in parts if parameter is not None))
    if not template.parameters:
        template.fill(str)
    return template


def check_lock_name(name: str) -> str:
    """Return the name, or raise saying what is wrong with it."""
    check_text(name, what="lock name")
    if not 0 < len(name) <= MAX_NAME:
        raise InvalidName(f"a lock name has from 1 to {MAX_NAME} characters, not {len(name)}")
    return name


def lock_held(name: str) -> str:
    """Tell why a job waits for its lock."""
    return f"lock {name} is held"


def is_lock_held(reason: str | None) -> bool:
    """Whether that is the reason why a job waits."""
    return reason is not None and reason.startswith("lock ") and reason.endswith(" is held")


def _not_a_template(text: str, why: str) -> InvalidOption:
    return InvalidOption(f"lock={text!r} is not a name such as 'reindex' or 'reindex:{{tenant}}': {why}")
