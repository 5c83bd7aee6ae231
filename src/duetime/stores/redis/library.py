"""The functions that run inside the server, put together from their files."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from typing import Final, NamedTuple

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


class Library(NamedTuple):
    """A library as the server takes it; its name tells one version of the code from another."""

    name: str
    source: str

    def function(self, verb: str) -> str:
        """Return the name that a verb has in the server."""
        return f"{self.name}_{verb}"


@cache
def library() -> Library:
    """Read the library; versions that differ live side by side in one server."""
    texts = {name: _read(name) for name in _FILES}
    body = "\n".join(f"do\n{text}end\n" if name in _APART else text for name, text in texts.items())
    name = f"duetime_{hashlib.sha256(body.encode()).hexdigest()[:12]}"
    return Library(name, f"#!lua name={name}\nlocal LIBRARY = '{name}'\n{body}")


def _read(name: str) -> str:
    with open(os.path.join(_FOLDER, f"{name}.lua"), encoding="utf-8") as file:
        return file.read()
