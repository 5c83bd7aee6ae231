from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from duetime.errors import StoreUnusable
from duetime.stores.redis import connection as libraries
from duetime.stores.redis.connection import function_library


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The functions' files, of an installation that may change."""
    folder = tmp_path / "lua"
    shutil.copytree(libraries._FOLDER, folder)
    monkeypatch.setattr(libraries, "_FOLDER", folder)
    return folder


def test_the_text_says_its_name(files: Path) -> None:
    assert function_library().source.startswith(f"#!lua name={function_library().name}\n")


@pytest.mark.parametrize("missing", [False, True])
def test_a_text_that_was_upgraded_under_a_running_process_is_not_given_out_under_the_old_name(
    files: Path,
    *,
    missing: bool,
) -> None:
    before = function_library()
    if missing:
        (files / "jobs.lua").unlink()
    else:
        (files / "jobs.lua").write_text("-- Another version.\n")

    with pytest.raises(StoreUnusable, match="restart the process"):
        _ = before.source
