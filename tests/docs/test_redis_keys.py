"""The reference of keys says what the functions in the server say of themselves."""

from __future__ import annotations

import re

from tests.docs.snippets import ROOT

_SAID = re.compile(r"^--   \{ns\}:(\S+) +(\w+)", re.MULTILINE)
_LISTED = re.compile(r"^\| `(\S+)` \| (\w+) \|", re.MULTILINE)
_USED = re.compile(r"\bkey\('(\w+)'")


def test_the_reference_lists_every_key() -> None:
    said = _SAID.findall((ROOT / "src/duetime/stores/redis/lua/keys.lua").read_text(encoding="utf-8"))
    listed = _LISTED.findall((ROOT / "docs/reference/redis.md").read_text(encoding="utf-8"))
    assert listed == said


def test_every_key_that_is_used_is_told_of() -> None:
    keys = (ROOT / "src/duetime/stores/redis/lua/keys.lua").read_text(encoding="utf-8")
    told = {name.partition(":")[0] for name, _ in _SAID.findall(keys)}
    used = {
        name
        for file in (ROOT / "src/duetime/stores/redis/lua").glob("*.lua")
        for name in _USED.findall(file.read_text(encoding="utf-8"))
    }
    assert used - told == set()
