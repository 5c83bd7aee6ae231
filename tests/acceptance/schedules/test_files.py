"""`duetime schedules export` and `import`."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from duetime.cli import schedule_writing
from tests.acceptance.kit import duetime, from_json
from tests.acceptance.schedules.kit import names, put


def test_schedules_move_through_a_file(folder: Path) -> None:
    put("a")
    put("b", "shop.slow", "--every", "15m", "--tag", "money")
    duetime("schedules", "pause", "b", "--reason", "moving house")
    done = duetime("schedules", "export", "--output", "all.yaml")
    assert done.stdout == "2 schedules written to all.yaml\n"
    before = (folder / "all.yaml").read_text()
    duetime("schedules", "delete", "a", "b", "--yes")
    load = ("schedules", "import", "shop:scheduler", "all.yaml")
    assert duetime(*load, "--dry-run").stdout == "a  would be created\nb  would be created\n"
    assert names() == []
    assert duetime(*load, "--by", "ann").stdout == "a  created\nb  created\n"
    assert from_json(*load) == {
        "dry_run": False,
        "schedules": {"a": "unchanged", "b": "unchanged"},
        "notes": [],
    }
    assert duetime("schedules", "export", "--format", "yaml").stdout == before


def test_a_file_with_problems_is_refused_as_a_whole(folder: Path) -> None:
    duetime("migrate")
    (folder / "crontab").write_text("0 3 * * * shop.slow\n0 25 * * * shop.greet name=ann\n@daily shop.slov\n")
    refused = duetime("schedules", "import", "shop:scheduler", "crontab")
    assert refused.exit_code == 2
    assert "2 problems; nothing was stored" in refused.stderr
    assert "crontab:2: bad hour '25'" in refused.stderr
    assert "     ^^" in refused.stderr
    assert "crontab:3: there is no task 'shop.slov' here; did you mean shop.slow" in refused.stderr
    assert names() == []


def test_without_the_code_a_file_is_taken_unchecked() -> None:
    duetime("migrate")
    document = json.dumps({"schedules": [{"name": "far", "task": "away.task", "every": "1h"}]})
    for arguments in (("-",), ("shop:scheduler", "-", "--no-check")):
        assert duetime("schedules", "import", *arguments, stdin=document).exit_code == 2
    assert duetime("schedules", "import", "-", "--no-check", stdin=document).stdout == "far  created\n"
    missing = duetime("schedules", "import", "--no-check", "nowhere.json")
    assert (missing.exit_code, "nowhere.json cannot be read" in missing.stderr) == (2, True)


def test_the_crontab_of_a_system_is_read_where_it_is_said_or_lies(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    duetime("migrate")
    (folder / "shop.cron").write_text("0 3 * * *\troot\tshop.greet\tname=ann\n")
    load = ("schedules", "import", "shop:scheduler", "shop.cron")
    refused = duetime(*load)
    assert refused.exit_code == 2
    assert "shop.cron:1: after the task come name=value pairs or JSON, not 'shop.greet'" in refused.stderr
    done = duetime(*load, "--format", "system-crontab")
    assert (done.stdout.split()[1], "jobs run as their worker: root" in done.stderr) == ("created", True)
    assert duetime("schedules", "export", "--format", "system-crontab").exit_code == 2
    monkeypatch.setattr(schedule_writing, "_SYSTEM_CRONTABS", {folder})
    assert duetime(*load[:3], str(folder / "shop.cron")).stdout.split()[1] == "unchanged"


def test_a_crontab_tells_what_it_cannot_say() -> None:
    put("a")
    put("b", "shop.slow", "--every", "15m")
    export = duetime("schedules", "export", "--format", "crontab")
    assert 'CRON_TZ=Europe/Riga\n0 3 * * * shop.greet {"name": "ann"}\n' in export.stdout
    assert "b: no cron expression" in export.stderr
    loaded = duetime("schedules", "import", "shop:scheduler", "-", "--format", "crontab", stdin=export.stdout)
    assert loaded.stdout == "a  unchanged\n"
    assert os.environ["DUETIME_URL"]


@pytest.mark.covers("readable-export")
def test_only_its_owner_can_read_an_exported_file(folder: Path) -> None:
    put("a")
    # Whoever may create the file beforehand, or has opened it, gets nothing of what is written.
    there = folder / "there.json"
    there.touch(mode=0o666)
    there.chmod(0o666)
    (folder / "link.json").symlink_to(there)
    with there.open() as opened:
        for name in ("new.json", "there.json", "link.json", "new.crontab"):
            assert duetime("schedules", "export", "--output", name).exit_code == 0
            assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
            assert "ann" in (folder / name).read_text()
        assert opened.read() == ""
    assert (folder / "link.json").is_symlink()
    assert not [path for path in folder.iterdir() if path.name.startswith(".duetime-")]


def test_a_pipe_stays_a_pipe_and_a_folder_that_is_not_there_is_told(folder: Path) -> None:
    put("a")
    os.mkfifo(folder / "pipe")
    reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert duetime("schedules", "export", "--output", "pipe").exit_code == 0
        assert b"ann" in os.read(reader, 65_536)
    finally:
        os.close(reader)
    assert (folder / "pipe").is_fifo()
    refused = duetime("schedules", "export", "--output", "nowhere/all.json")
    assert refused.exit_code == 1
    assert "nowhere/all.json cannot be written" in refused.stderr


@pytest.mark.covers("hostile-schedule-file")
def test_of_a_file_that_is_too_large_no_more_is_read_than_that(folder: Path) -> None:
    duetime("migrate")
    with (folder / "large.json").open("wb") as file:
        file.truncate(1 << 40)
    refused = duetime("schedules", "import", "--no-check", "large.json")
    assert refused.exit_code == 2
    assert "more than 10,000,000 characters; split it" in refused.stderr
