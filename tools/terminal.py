"""Draw `docs/terminal.svg`: what commands print on a terminal while a worker runs, in the colours that they have there."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

PICTURE = Path(__file__).resolve().parents[1] / "docs/terminal.svg"
COLUMNS = 130
COMMANDS = ("duetime top --once", "duetime jobs list --limit 5")
APP = """\
import asyncio

from duetime import Scheduler, cron, current_job, every

scheduler = Scheduler()


@scheduler.task(queue="reports")
async def report(month: str) -> None:
    for step in range(10):
        await current_job().progress(step / 10, f"{month}: page {step} of 10")
        await asyncio.sleep(6 if step >= 6 or month == "May" else 0)


@scheduler.task
async def send_email(user_id: int) -> None:
    if user_id == 13:
        raise ConnectionError("the relay refused the address")


@scheduler.schedule(every("5m"))
async def fetch_rates() -> None: ...


@scheduler.schedule(cron("30 2 * * *", tz="Europe/Berlin"), name="nightly")
async def tidy() -> None: ...
"""
BEFORE = (
    "duetime queues pause mail --reason maintenance",
    "duetime enqueue shop:scheduler shop.send_email user_id=8 --queue mail",
    "duetime enqueue shop:scheduler shop.report month=May",
    "duetime enqueue shop:scheduler shop.report month=June",
    "duetime enqueue shop:scheduler shop.send_email user_id=7",
    "duetime enqueue shop:scheduler shop.send_email user_id=13",
)

_CODE = re.compile(r"\x1b\[(\d*)m")
_CELL = re.compile(r"\S+(?: \S+)*")
_COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "36": "#79c0ff"}
_WIDTH, _HEIGHT, _EDGE = 7.8, 18, 16
_FRAME = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" font-size="13" fill="#e6edf3" \
font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace">
<title>What duetime prints on a terminal</title>
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
{lines}
</svg>
"""


def main() -> None:
    """Run a worker with something to do, ask it, and draw what is said."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "shop.py").write_text(APP, encoding="utf-8")
        os.chdir(folder)
        os.environ.pop("DUETIME_URL", None)
        os.environ.pop("NO_COLOR", None)
        serve = "duetime worker shop:scheduler --concurrency 20 --queue default --queue reports --queue mail"
        with subprocess.Popen(_program(serve), stderr=subprocess.DEVNULL) as worker:
            try:
                _until(lambda: _read("duetime workers list") != [])
                for command in BEFORE:
                    subprocess.run(_program(command), check=True, capture_output=True)
                _until(_is_under_way)
                printed = "\n".join(f"$ {command}\n{shown(command)}" for command in COMMANDS)
            finally:
                worker.terminate()
    PICTURE.write_text(picture(printed), encoding="utf-8")


def shown(command: str) -> str:
    """Return what a command prints on a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    with os.fdopen(theirs, "wb") as terminal, os.fdopen(ours, "rb", buffering=0) as screen:
        subprocess.run(_program(command), stdin=terminal, stdout=terminal, check=True)
        return screen.read(100_000).decode().replace("\r", "")


def picture(text: str) -> str:
    """Draw lines of a terminal as SVG."""
    lines = text.rstrip().split("\n")
    drawn = "\n".join(_line(line, _EDGE + (number + 1) * _HEIGHT) for number, line in enumerate(lines))
    longest = max(len(_CODE.sub("", line)) for line in lines)
    width, height = longest * _WIDTH + 2 * _EDGE, len(lines) * _HEIGHT + 2 * _EDGE + 4
    return _FRAME.format(width=width, height=height, lines=drawn)


def _line(line: str, y: int) -> str:
    """Place each cell where it begins, as wide as it is, so that columns hold in any font and with any care for spaces."""
    colour, column, drawn = "", 0, list[str]()
    for number, part in enumerate(_CODE.split(line)):
        if number % 2:
            colour = f' fill="{_COLOURS[part]}"' if part in _COLOURS else ""
            continue
        for cell in _CELL.finditer(part):
            x, width = _EDGE + (column + cell.start()) * _WIDTH, len(cell[0]) * _WIDTH
            place = f'x="{x:.1f}" y="{y}" textLength="{width:.1f}"'
            drawn.append(f"<text {place}{colour}>{escape(cell[0])}</text>")
        column += len(part)
    return "\n".join(drawn)


def _program(command: str) -> list[str]:
    return [sys.executable, "-m", "duetime.cli", *command.split()[1:]]


def _read(command: str) -> list[dict[str, Any]]:
    done = subprocess.run(_program(f"{command} --json"), capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else []


def _is_under_way() -> bool:
    """Whether both reports have come to where they stay for a while, and the mails are done."""
    jobs = _read("duetime jobs list")
    at = {job["progress"] for job in jobs if job["task"] == "shop.report"}
    return at == {0.0, 0.6} and {"failed", "succeeded"} <= {job["state"] for job in jobs}


def _until(true: Callable[[], bool]) -> None:
    while not true():
        time.sleep(0.2)


if __name__ == "__main__":
    main()
