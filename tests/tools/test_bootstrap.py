"""What the first start installs, and says meanwhile."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import bootstrap
from tools.bootstrap import ROOT


def steps(target: str, venv: Path) -> str:
    """What `make` would do."""
    command = ["/usr/bin/env", "make", "--dry-run", "--no-print-directory", target, f"VENV={venv}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_the_demo_installs_what_it_needs_and_no_more(tmp_path: Path) -> None:
    assert "tools.bootstrap web" in steps("demo", tmp_path)
    assert "tools.bootstrap dev" not in steps("demo", tmp_path)
    assert "tools.bootstrap dev" in steps("lint", tmp_path)


def test_what_is_installed_is_not_installed_again(tmp_path: Path) -> None:
    (tmp_path / ".installed-demo").touch()
    assert "tools.bootstrap" not in steps("demo", tmp_path)
    assert "tools.bootstrap dev" in steps("lint", tmp_path)


def test_a_line_says_what_takes_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    bootstrap.main("web", str(tmp_path))
    assert capsys.readouterr().out == (
        f"Installing into {tmp_path.name}: what the demo needs, FastAPI and uvicorn: a few seconds …\n"
    )
    assert ran[-1][-1] == f"{ROOT}[web]"
