from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest

from duetime import Scheduler
from duetime.errors import ConfigError, DuetimeError, InvalidDuration, InvalidName, InvalidOption, Unsupported
from duetime.locks import file as files, open_lock


@pytest.mark.parametrize("ttl", [0, -1, math.nan, 0.05, "2 years", 400 * 86_400, True, None])
def test_a_time_to_live_is_from_a_tenth_of_a_second_to_a_year(ttl: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidDuration, match="ttl"):
        open_lock(f"file://{tmp_path}", "reindex", ttl=ttl)


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 201, None, "\ud800"])
def test_odd_names_are_refused(name: Any, tmp_path: Path) -> None:
    with pytest.raises((InvalidName, InvalidOption), match="lock name"):
        open_lock(f"sqlite:///{tmp_path}/locks.db", name)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("etcd://here", "not a database we know"),
        ("sqlite://", "shared with no other process"),
        ("file://relative/folder", "named from the root"),
        ("file:///no/such/folder", "mkdir -p /no/such/folder"),
    ],
)
def test_odd_places_are_refused_with_the_way_out(url: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        open_lock(url, "reindex")
    with pytest.raises(ConfigError, match=words):
        Scheduler("sqlite:///jobs.db", locks=url)


def test_a_folder_that_is_not_writable_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root, who runs some of the tests, may write anywhere.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ConfigError, match="not writable"):
        open_lock(f"file://{tmp_path}", "reindex")


def test_a_folder_on_a_network_file_system_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "22 1 254:1 / / rw - ext4 /dev/vda1 rw\n"
        f"40 22 0:40 / {tmp_path} rw,relatime shared:20 - nfs4 server:/export rw\n"
    )
    monkeypatch.setattr(files, "_MOUNTS", str(mounts))
    with pytest.raises(ConfigError, match="nfs4, a network file system"):
        open_lock(f"file://{tmp_path}", "reindex")


def test_a_name_may_have_any_letter_in_a_file(tmp_path: Path) -> None:
    lock = open_lock(f"file://{tmp_path}", "../tenant/é: 1")
    with lock.sync:
        [file] = tmp_path.iterdir()
        assert "/" not in file.name
    with pytest.raises(InvalidName, match="too long for the name of a file"):
        open_lock(f"file://{tmp_path}", "é" * 100)


def test_a_file_that_holds_something_else_is_a_free_lock(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "reindex.lock").write_text("4711\n")
    with open_lock(f"file://{tmp_path}", "reindex").sync as held:
        assert held.fence > 0
    assert "holds no record of a lock" in caplog.text


def test_locks_in_files_are_not_listed(tmp_path: Path) -> None:
    scheduler = Scheduler(f"sqlite:///{tmp_path}/jobs.db", locks=f"file://{tmp_path}")
    with pytest.raises(Unsupported, match=r"ask a lock for its owner\(\)"):
        _ = scheduler.locks


async def test_a_loop_is_not_blocked(tmp_path: Path) -> None:
    with pytest.raises(DuetimeError, match="await the async verb"):
        open_lock(f"file://{tmp_path}", "reindex").sync.acquire()
