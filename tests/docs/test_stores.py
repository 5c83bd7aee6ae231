"""What the pages say of stores is true of them."""

from __future__ import annotations

import inspect
import re

import duetime.testing.conformance as suite
from duetime.stores.base import Store
from tests.docs.snippets import ROOT

GUIDE = (ROOT / "docs" / "how-to" / "write-a-store.md").read_text(encoding="utf-8")
NAME = re.compile(r"`(\w+)")


def rows(heading: str) -> list[tuple[set[str], set[str]]]:
    """The names in the first and in the second cell of each row of a table."""
    table = GUIDE.split(heading)[1].split("\n\n")[0]
    cells = [line.split("|") for line in table.splitlines()[2:]]
    return [(set(NAME.findall(first)), set(NAME.findall(second))) for _, first, second, _ in cells]


def test_every_verb_of_a_store_has_its_place_on_the_way_to_a_new_one() -> None:
    verbs = {name for name, _ in inspect.getmembers(Store) if not name.startswith("_")}
    assert set.union(*(first for first, _ in rows("| Verbs |"))) - {"tx"} == verbs


def test_every_group_of_the_suite_has_its_place_on_the_way_to_a_new_store() -> None:
    groups = {name for name in suite.__all__ if name.startswith("Test")}
    assert set.union(*(second for _, second in rows("| Verbs |"))) == groups
