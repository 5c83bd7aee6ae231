"""The functions that run inside the server, put together from the files in `lua/`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

from duetime.errors import StoreUnusable

_FOLDER: Final = os.path.join(os.path.dirname(__file__), "lua")
_FILES: Final = (
    "keys",
    "replies",
    "indexes",
    "rows",
    "asides",
    "store",
    "audit",
    "jobs",
    "queues",
    "commands",
    "workers",
    "claims",
    "settling",
    "reports",
    "looks",
    "limits",
    "pulses",
    "control",
    "reads",
    "retention",
    "schedules",
    "moving",
)
"""In this order: each uses what stands before it."""
_APART: Final = frozenset({"limits", "pulses", "retention", "moving"})
"""Files whose names no other uses: they are kept apart, since Lua takes no more than 200 names in one place."""


class FunctionLibrary(NamedTuple):
    """A library as the server takes it; its name tells one version of the code from another."""

    name: str

    @property
    def source(self) -> str:
        """The text, read anew: few servers lack it, and who keeps it has a tenth of a megabyte more."""
        try:
            parts = tuple(_read_parts())
        except FileNotFoundError:
            parts = ()
        # Else every process of this version would run what another one means by the same names.
        if _library_name(parts) != self.name:
            raise StoreUnusable(
                "the Redis server lacks the functions of Duetime, and their files have changed since this process began, "
                "as by an upgrade; restart the process"
            )
        return "".join((f"#!lua name={self.name}\nlocal LIBRARY = '{self.name}'\n", *parts))

    def function(self, verb: str) -> str:
        """Return the name that a verb has in the server."""
        return f"{self.name}_{verb}"


@cache
def function_library() -> FunctionLibrary:
    """Return the library; versions that differ live side by side in one server."""
    return FunctionLibrary(_library_name(_read_parts()))


def _library_name(parts: Iterable[str]) -> str:
    body = hashlib.sha256()
    for part in parts:
        body.update(part.encode())
    return f"duetime_{body.hexdigest()[:12]}"


def _read_parts() -> Iterator[str]:
    """Read the files one by one."""
    for name in _FILES:
        with open(os.path.join(_FOLDER, f"{name}.lua"), encoding="utf-8") as file:
            text = file.read()
        yield f"do\n{text}end\n\n" if name in _APART else f"{text}\n"
