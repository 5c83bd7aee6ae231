"""The functions that run inside the server, put together from their files."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

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
    folder = resources.files("duetime.stores.redis") / "lua"
    texts = {name: (folder / f"{name}.lua").read_text(encoding="utf-8") for name in _FILES}
    body = "\n".join(f"do\n{text}end\n" if name in _APART else text for name, text in texts.items())
    name = f"duetime_{hashlib.sha256(body.encode()).hexdigest()[:12]}"
    return Library(name, f"#!lua name={name}\nlocal LIBRARY = '{name}'\n{body}")
