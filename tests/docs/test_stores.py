"""What the pages say of stores is true of them."""

from __future__ import annotations

import inspect
import re

import pytest

import duetime.testing.conformance as suite
from duetime.errors import ConfigError
from duetime.model.urls import HYBRID_OPTIONS
from duetime.stores.base import Store
from duetime.stores.open import open_store
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


URLS = {
    "SQLite": "sqlite:///jobs.db",
    "PostgreSQL": "postgresql://db.example/app",
    "MariaDB": "mariadb://db.example/app",
    "Redis": "redis://db.example",
}
HYBRID = "hybrid+redis://cache?far=postgresql://db.example/app"
DECLARED = {
    "`enqueue(tx=...)`": "transactions",
    "effects that happen": "loans",
    "jobs of a queue start in one order": "one_order",
}
"""How the rows of the table begin that say what stores declare."""


@pytest.mark.parametrize("row", DECLARED)
def test_the_table_of_capabilities_says_what_the_stores_declare(row: str) -> None:
    page = (ROOT / "docs" / "explanation" / "databases.md").read_text(encoding="utf-8")
    lines = [line.split("|") for line in page.splitlines() if line.startswith("|")]
    (heads,) = [line for line in lines if "SQLite" in line[2]]
    (cells,) = [line[2:-1] for line in lines if line[1].strip().startswith(row)]
    written = {
        head.strip(): cell.strip().partition(",")[0] for head, cell in zip(heads[2:-1], cells, strict=True)
    }
    assert written == {
        name: "yes" if getattr(open_store(url).capabilities, DECLARED[row]) else "no"
        for name, url in {**URLS, "Hybrid": HYBRID}.items()
    }


@pytest.mark.parametrize("name", URLS)
def test_every_option_of_a_url_is_listed(name: str) -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    lines = [line.split("|") for line in page.splitlines() if line.startswith(f"| {name} |")]
    listed = {option for line in lines for option in NAME.findall(line[2])}
    with pytest.raises(ConfigError) as refused:
        open_store(f"{URLS[name]}?nonsense=1")
    known = set(str(refused.value).rpartition("options are ")[2].split(", "))
    # Those of libpq are its own to list.
    assert listed <= known if name == "PostgreSQL" else listed == known


def test_every_option_of_a_hybrid_is_listed() -> None:
    page = (ROOT / "docs" / "how-to" / "near-and-far.md").read_text(encoding="utf-8")
    table = page.split("| Option | Default | Meaning |")[1].split("\n\n")[0]
    assert {NAME.findall(line.split("|")[1])[0] for line in table.splitlines()[2:]} == set(HYBRID_OPTIONS)
