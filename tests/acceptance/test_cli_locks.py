"""`duetime locks`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from duetime.cli import output as confirming
from duetime.locks import open_lock
from tests.acceptance.kit import URL, duetime, from_json

pytestmark = pytest.mark.usefixtures("folder")


def test_held_locks_are_listed_with_who_holds_them_since_when() -> None:
    with open_lock(URL[1], "reindex").sync as held:
        header, line = duetime("locks", "list", *URL).stdout.splitlines()
        assert header.split() == ["LOCK", "HOLDER", "SINCE", "ENDS", "FENCE"]
        name, holder, *_, fence = line.split()
        assert (name, fence) == ("reindex", str(held.fence))
        assert holder.endswith(f":{os.getpid()}")
        assert "ago" in line
        [lock] = from_json("locks", "list", *URL)
        assert (lock["name"], lock["fence"], lock["token"]) == ("reindex", held.fence, None)
        assert lock["since"] < lock["deadline"]
    assert duetime("locks", "list", *URL).stdout == "no locks\n"


def test_a_lock_is_taken_from_its_holder() -> None:
    lock = open_lock(URL[1], "reindex").sync
    assert lock.acquire()
    assert duetime("locks", "release", "reindex", "--yes", *URL).stdout == "reindex  released\n"
    assert from_json("locks", "release", "reindex", "--yes", *URL) == {"reindex": "not held"}
    assert not lock.renew()
    assert lock.lost.is_set()


def test_a_lock_is_not_released_by_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = open_lock(URL[1], "reindex").sync
    assert lock.acquire()
    assert "say --yes" in duetime("locks", "release", "reindex", *URL).stderr
    monkeypatch.setattr(confirming, "is_interactive", lambda: True)
    assert "nothing was released" in duetime("locks", "release", "reindex", *URL, stdin="reindx\n").stderr
    assert lock.renew()
    assert duetime("locks", "release", "reindex", *URL, stdin="reindex\n").exit_code == 0
    assert not lock.renew()


def test_a_file_that_is_not_there_is_not_made(folder: Path) -> None:
    assert "no file none.db" in duetime("locks", "list", "--url", "sqlite:///none.db").stderr
    assert not (folder / "none.db").exists()
