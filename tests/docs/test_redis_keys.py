"""The reference lists the keys that the functions in the server use."""

from __future__ import annotations

import re

from tests.docs.snippets import ROOT

_LISTED = re.compile(r"^\| `(\w+)\S*` \| \w+ \|", re.MULTILINE)
_USED = re.compile(r"\b(?:key|members|leave|index|enlist|strike|looks\.first)\('(\w+)'")
_INDEXES = re.compile(r"^  \{'(\w+)', function", re.MULTILINE)
_QUOTED = re.compile(r"'(\w+)'")

LISTED = set(_LISTED.findall((ROOT / "docs/reference/redis.md").read_text(encoding="utf-8")))
LUA = "\n".join(
    file.read_text(encoding="utf-8") for file in (ROOT / "src/duetime/stores/redis/lua").glob("*.lua")
)


def test_every_key_that_is_used_is_listed() -> None:
    used = {*_USED.findall(LUA), *_INDEXES.findall(LUA)}
    assert len(used) > 40
    assert used - LISTED == set()


def test_every_key_that_is_listed_is_used() -> None:
    assert LISTED - set(_QUOTED.findall(LUA)) == set()
