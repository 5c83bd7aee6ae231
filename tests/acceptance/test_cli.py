"""What all commands share: help, completion, and one clear line for what cannot be used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from duetime.cli.failures import without_passwords
from tests.acceptance.kit import duetime
from tests.unit.test_import import HEAVY


def test_importing_the_command_line_loads_no_driver_and_no_web_code() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import duetime.cli, sys; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert HEAVY.isdisjoint(loaded.stdout.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete_commands(shell: str) -> None:
    script = duetime("completion", shell)
    assert script.exit_code == 0
    assert "_DUETIME_COMPLETE" in script.stdout


def test_commands_are_completed_for_a_shell() -> None:
    asked = {"_DUETIME_COMPLETE": "bash_complete", "COMP_WORDS": "duetime work", "COMP_CWORD": "1"}
    answer = subprocess.run(
        [sys.executable, "-c", "from duetime.cli import main; main(prog_name='duetime')"],
        env=os.environ | asked,
        check=False,
        capture_output=True,
        text=True,
    )
    assert answer.stdout.split() == ["plain,worker", "plain,workers"]


def test_help_names_the_exit_codes_and_shows_examples() -> None:
    text = duetime("--help").stdout
    assert "Exit codes:" in text
    assert "duetime worker jobs:scheduler" in text


@pytest.mark.parametrize(
    "command", ["worker", "workers", "enqueue", "jobs", "queues", "prune", "migrate", "doctor", "cron"]
)
def test_every_command_shows_an_example(command: str) -> None:
    assert f"\n    duetime {command} " in duetime(command, "--help").stdout


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        ("shop", 2, "write MODULE:OBJECT"),
        ("shop.py:scheduler", 2, "write MODULE:OBJECT"),
        ("nowhere.jobs:scheduler", 2, "there is no module 'nowhere'"),
        ("shop.jobs:scheduler", 2, "there is no module 'shop.jobs'"),
        ("shop:schedular", 2, "did you mean scheduler"),
        ("shop:xyz", 2, "did you mean scheduler?"),
        ("shop:something", 2, "shop:something is 7, not a duetime.Scheduler; did you mean scheduler?"),
        ("broken:scheduler", 1, "broken.py:2: ZeroDivisionError"),
        ("lacking:scheduler", 1, "No module named 'nothing_of_this_name'"),
        ("leaving:scheduler", 1, "importing leaving failed"),
        ("misconfigured:scheduler", 2, "importing misconfigured failed"),
        ("typo:scheduler", 1, "typo.py, line 1"),
    ],
)
def test_a_scheduler_that_cannot_be_loaded_is_one_clear_line(
    folder: Path, target: str, code: int, said: str
) -> None:
    (folder / "broken.py").write_text("one = 1\none / 0\n")
    (folder / "lacking.py").write_text("import nothing_of_this_name\n")
    (folder / "leaving.py").write_text("raise SystemExit(5)\n")
    (folder / "misconfigured.py").write_text("from duetime import Scheduler\nScheduler('nonsense')\n")
    (folder / "typo.py").write_text("def\n")

    result = duetime("worker", target)

    assert result.exit_code == code
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" in duetime("--debug", "worker", target).stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--url", "nonsense"), 2, "a database URL looks like"),
        (("--url", "oracle://db"), 2, "oracle://"),
        (("--url", "sqlite:////nowhere/at/all/jobs.db"), 4, "nowhere"),
        (("--url", "sqlite:///shop.py"), 4, "shop.py"),
        (("--url", "sqlite:///empty.db"), 4, "duetime migrate --url sqlite:///empty.db"),
        (("--namespace", "Not Allowed"), 2, "namespace"),
    ],
)
def test_a_database_that_cannot_be_used_is_one_clear_line(
    folder: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    result = duetime("jobs", "list", *arguments)
    assert result.exit_code == code
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("at postgresql://me:secret@db/app.", "at postgresql://me:***@db/app."),
        ("postgresql+asyncpg://me:se:c@r/et@db/app", "postgresql+asyncpg://me:***@db/app"),
        ("postgresql://:secret@db", "postgresql://:***@db"),
        ("postgresql://db/app?user=me&password=secret&x=1", "postgresql://db/app?user=me&password=***&x=1"),
        ("postgresql://me@db:5432/app", "postgresql://me@db:5432/app"),
        ("sqlite:///jobs.db", "sqlite:///jobs.db"),
    ],
)
def test_passwords_are_blotted_out(text: str, safe: str) -> None:
    assert without_passwords(text) == safe


@pytest.mark.parametrize("text", ["x" * 500_000, "a://b:" * 20_000])
def test_to_look_for_passwords_in_a_long_line_is_no_work(text: str) -> None:
    assert without_passwords(text) == text


def test_a_database_that_does_not_answer_is_told_without_its_password(folder: Path) -> None:
    for command in (["jobs", "list"], ["migrate"], ["doctor"]):
        result = duetime(*command, "--url", "postgresql://me:secret@127.0.0.1:1/app")
        assert result.exit_code == 4
        assert "secret" not in result.output
