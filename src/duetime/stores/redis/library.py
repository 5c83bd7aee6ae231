"""The functions that run inside the server, put together from their files."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

_FILES: Final = (
    "keys",
    "replies",
    "rows",
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
    body = "\n".join((folder / f"{name}.lua").read_text(encoding="utf-8") for name in _FILES)
    name = f"duetime_{hashlib.sha256(body.encode()).hexdigest()[:12]}"
    return Library(name, f"#!lua name={name}\nlocal LIBRARY = '{name}'\n{body}")
