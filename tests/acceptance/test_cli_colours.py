"""Colours, on a real terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from tests.acceptance.kit import URL, duetime

pytestmark = pytest.mark.usefixtures("folder")


def on_a_terminal(*arguments: str) -> str:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "wb") as terminal:
        command = [sys.executable, "-m", "duetime.cli", *arguments]
        subprocess.run(command, stdout=terminal, env={**os.environ, "TERM": "xterm"}, check=False, timeout=30)
        shown = os.read(ours, 10_000)
    os.close(ours)
    return shown.decode()


def test_states_have_colours_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    job = duetime("enqueue", "shop:scheduler", "shop.slow").stdout.strip()
    duetime("jobs", "cancel", job, "--reason", "bell \x07 and \x1b[31mred", *URL)
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = on_a_terminal("jobs", "list", *URL)
    assert "\x1b[33mcancelled\x1b[0m" in shown
    assert "bell \\x07 and \\x1b[31mred" in shown
    assert "\x1b[33mpaused\x1b[0m: by me" in paused_in_top()

    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in on_a_terminal("jobs", "list", *URL)


def paused_in_top() -> str:
    duetime("queues", "pause", "mail", "--reason", "by me", *URL)
    return on_a_terminal("top", "--once", *URL)
