from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from duetime.errors import StoreUnusable
from duetime.stores.open import open_store
from duetime.stores.sql.sqlite import checks
from duetime.stores.sql.sqlite.checks import filesystem_type

MOUNTS = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:25 / /srv/share rw,relatime shared:9 - nfs4 server:/share rw
31 22 0:26 / /srv/share/local rw,relatime - xfs /dev/sdb1 rw
32 22 0:27 / /srv/with\040space rw,relatime - cifs //server/share rw
33 22 0:28 / /srv/twice rw,relatime - ext4 /dev/sdc1 rw
34 22 0:29 / /srv/twice rw,relatime - fuse.sshfs host: rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/jobs.db", "ext4"),
        ("/srv/share/jobs.db", "nfs4"),
        ("/srv/shared/jobs.db", "ext4"),
        ("/srv/share/local/jobs.db", "xfs"),
        ("/srv/with space/jobs.db", "cifs"),
        ("/srv/twice/jobs.db", "fuse.sshfs"),
    ],
)
def test_a_path_is_on_the_innermost_and_latest_mount(path: str, kind: str) -> None:
    assert filesystem_type(Path(path), MOUNTS) == kind


def test_without_a_list_of_mounts_nothing_is_claimed() -> None:
    assert filesystem_type(Path("/jobs.db"), "") is None


async def refusal(path: Path) -> str:
    store = open_store(f"sqlite:///{path}")
    with pytest.raises(StoreUnusable) as refused:
        await store.open()
    await store.close()
    return str(refused.value)


async def test_a_missing_folder_is_refused_with_the_command_that_makes_it(tmp_path: Path) -> None:
    assert f"mkdir -p {tmp_path / 'absent'}" in await refusal(tmp_path / "absent" / "jobs.db")


async def test_a_folder_is_not_taken_for_a_file(tmp_path: Path) -> None:
    assert "is a folder" in await refusal(tmp_path)


async def test_a_file_that_is_not_a_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, " * 100)
    assert "is not a SQLite database" in await refusal(path)
    assert path.read_text() == "Dear reader, " * 100


async def test_a_damaged_database_is_refused(damaged_path: Path) -> None:
    assert "is damaged" in await refusal(damaged_path)


async def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text("30 22 0:25 / / rw,relatime shared:9 - nfs4 server:/share rw\n")
    monkeypatch.setattr(checks, "_MOUNTS", mounts)
    path = tmp_path / "jobs.db"
    assert "network file system (nfs4)" in await refusal(path)
    assert not path.exists()


async def test_a_folder_that_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    # Whoever runs the tests as root may write anywhere.
    monkeypatch.setattr(os, "open", refuse)
    text = await refusal(tmp_path / "jobs.db")
    assert "Permission denied" in text
    assert f"right to write in {tmp_path}" in text


async def test_a_read_only_folder_is_refused(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda place, _: place != str(store_path.parent))
    assert f"{store_path.parent} cannot be written" in await refusal(store_path)


async def test_a_read_only_file_is_refused(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda place, _: place != str(store_path))
    assert f"{store_path} cannot be written" in await refusal(store_path)


async def test_all_files_are_for_their_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = open_store(f"sqlite:///{tmp_path / 'jobs.db'}")
        await store.open()
        modes = modes_in(tmp_path)
        await store.close()
    finally:
        os.umask(before)
    assert modes == {"jobs.db": 0o600, "jobs.db-wal": 0o600, "jobs.db-shm": 0o600}


@pytest.fixture
async def store_path(tmp_path: Path) -> Path:
    path = tmp_path / "whole.db"
    store = open_store(f"sqlite:///{path}")
    await store.open()
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA quick_check").fetchone() == ("ok",)
    return path


@pytest.fixture
def damaged_path(store_path: Path) -> Path:
    data = bytearray(store_path.read_bytes())
    data[100:] = os.urandom(len(data) - 100)
    store_path.write_bytes(data)
    return store_path


def modes_in(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
