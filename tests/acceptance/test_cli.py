"""What all commands share: help, completion, and one clear line for what cannot be used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from duetime.cli.database import doctor
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
        ("shop", 2, "write MODULE:OBJECT, such as shop:scheduler"),
        ("shop.py", 2, "such as shop:scheduler"),
        ("shop.py:queue", 2, "such as shop:queue"),
        ("./shop:queue", 2, "such as shop:queue"),
        ("web/pages.py:queue", 2, "such as web.pages:queue"),
        ("shop.pages.queue", 2, "such as myapp.jobs:scheduler"),
        ("nightly", 2, "such as myapp.jobs:scheduler"),
        ("shop.queue", 2, "such as shop:queue"),
        ("../shop.py", 2, "such as myapp.jobs:scheduler"),
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
    (folder / "web").mkdir()
    (folder / "web" / "pages.py").touch()
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


LEAK = "\x1b[31mnot at postgresql://me:hush/quiet@db/app?sslpassword=hidden\x1b]0;title\x07"


@pytest.mark.covers("password-in-message")
def test_a_traceback_has_neither_passwords_nor_what_a_terminal_obeys(folder: Path) -> None:
    (folder / "leaking.py").write_text(f"raise RuntimeError({LEAK!r})\n")
    for arguments in (("worker", "leaking:scheduler"), ("--debug", "worker", "leaking:scheduler")):
        said = duetime(*arguments).stderr
        assert "postgresql://me:***@db/app?sslpassword=***" in said
        assert "\x1b" not in said
        assert "\x07" not in said
        assert not any(part in said for part in ("hush", "quiet", "hidden"))
    assert "Traceback" in said


@pytest.mark.covers("password-in-message")
def test_an_unexpected_error_is_shown_as_safely(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError(LEAK)

    monkeypatch.setattr(doctor, "callback", fail)
    result = duetime("doctor")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert "postgresql://me:***@db/app?sslpassword=***" in result.stderr
    assert "\x1b" not in result.stderr


@pytest.mark.covers("password-in-message")
@pytest.mark.parametrize("words", [("jobs", "list"), ("jobs", "show", "1"), ("copy", "a", "b"), ()])
def test_a_url_in_the_wrong_place_is_not_repeated_with_its_password(words: tuple[str, ...]) -> None:
    result = duetime(*words, "postgresql://me:hush/quiet@db/\x1b[31mapp")
    assert result.exit_code == 2
    assert "postgresql://me:***@db/" in result.stderr
    assert not any(part in result.stderr for part in ("hush", "quiet"))
    assert "\x1b" not in result.stderr


@pytest.mark.covers("password-in-message")
@pytest.mark.parametrize("password", ["se#cret", "se/cret", "se?cret", "a@se/cret"])
def test_a_password_that_is_not_encoded_is_refused_with_how_to_write_it(folder: Path, password: str) -> None:
    for command in (["jobs", "list"], ["migrate"], ["doctor"], ["--debug", "jobs", "list"]):
        result = duetime(*command, "--url", f"postgresql://me:{password}@127.0.0.1:1/app")
        assert result.exit_code == 2
        assert "urllib.parse.quote(password, safe='')" in result.stderr
        assert not any(part in result.output for part in ("se#", "cret", "a@se"))


def test_a_database_that_does_not_answer_is_told_without_its_password(folder: Path) -> None:
    for command in (["jobs", "list"], ["migrate"], ["doctor"]):
        result = duetime(*command, "--url", "postgresql://me:secret@127.0.0.1:1/app")
        assert result.exit_code == 4
        assert "secret" not in result.output
