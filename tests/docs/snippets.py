"""The code in README and docs, as something that can be run.

A page's blocks run in order, in one namespace and one empty folder. What follows the language on a fence says
more: `title="app.py"` adds the block to that file instead of running it, `from="src/…"` says where it is quoted
from, `raises="InvalidCron"` expects an error, `exits="1"` an exit code, and `no-run="why"` leaves a block alone. A
command that runs for ever is stopped when it has printed something: `stop-at="done"`. Pages whose every step is typed
are followed by `terminals.py` instead.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import contextlib
import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duetime.errors

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("duetime", "pytest", "python")
TYPED = ("docs/tutorial.md", "docs/how-to/fastapi.md", "docs/how-to/http-api.md")
"""The pages that show whole files and every command, in the order in which a reader types them."""
# By name, so that the plugin of this very tree is taken, installed or not.
PLUGIN = {"PYTEST_ADDOPTS": "-p no:duetime -p duetime.testing.plugin -p no:cacheprovider"}

_FENCE = re.compile(r"^```(\w+) ?(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
_OPTION = re.compile(r'([a-z-]+)="([^"]+)"')
_OPTIONS = {"title", "from", "raises", "exits", "stop-at", "no-run", "terminal", "within"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block of a page."""

    language: str
    text: str
    line: int
    options: Mapping[str, str] = field(default_factory=dict)


def pages() -> list[Path]:
    """Return every page that people read."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def read_blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page, or complain about a fence that says something unknown."""
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        options = dict(_OPTION.findall(match[2]))
        if unknown := options.keys() - _OPTIONS or _OPTION.sub("", match[2]).strip():
            raise ValueError(f"line {line}: the fence says {unknown}; it may say {sorted(_OPTIONS)}")
        yield Block(language=match[1], text=match[3], line=line, options=options)


def check_quotation(block: Block, page: str) -> None:
    """Fail where a block is not what the file says that it is quoted from."""
    source = (ROOT / block.options["from"]).read_text(encoding="utf-8")
    assert block.text in source, f"{page}:{block.line} is not what {block.options['from']} says"


class Page:
    """Runs the blocks of one page in the current folder."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._names: dict[str, Any] = {"__name__": "page"}

    def run(self, block: Block, runner: asyncio.Runner) -> None:
        """Run one block, whatever its language."""
        if "no-run" in block.options:
            return
        if "title" in block.options:
            with Path(block.options["title"]).open("a", encoding="utf-8") as file:
                file.write(block.text)
        elif "from" in block.options:
            check_quotation(block, self._name)
        elif block.language == "python":
            self._run_python(block, runner)
        elif block.language == "console":
            self._run_console(block)

    def _run_python(self, block: Block, runner: asyncio.Runner) -> None:
        # The padding makes tracebacks point into the page.
        source = "\n" * block.line + block.text
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = compile(source, self._name, "exec", flags=flags, dont_inherit=True)
        expected = _error_type(block.options.get("raises"))
        try:
            result = eval(code, self._names)  # noqa: S307 - running the docs is the point
            if inspect.iscoroutine(result):
                runner.run(result)
        except expected as error:
            print(f"{type(error).__name__}: {error}")  # noqa: T201 - shown when the test fails
        else:
            if expected != ():
                raise AssertionError(f"{self._name}:{block.line} raised nothing, not {expected}")

    def _run_console(self, block: Block) -> None:
        """Run the `duetime` and `pytest` commands of a session and compare what they print; `…` stands for anything."""
        for session in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, expected = session.partition("\n")
            words = shlex.split(command, comments=True)
            if words[0] not in PROGRAMS:
                continue
            printed, code = _session(words, block.options)
            place = f"{self._name}:{block.line}: {command}\n{printed}"
            assert code == int(block.options.get("exits", 0)), place
            assert not expected.strip() or _fits(expected, printed), place


def _session(words: Sequence[str], options: Mapping[str, str]) -> tuple[str, int]:
    """Run a program of ours and return what it printed and its exit code."""
    awaited = options.get("stop-at")
    program = Path(sys.executable).with_name(words[0])
    process = subprocess.Popen(
        [program, *words[1:]],
        env=os.environ | PLUGIN,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process, contextlib.ExitStack() as stack:
        stack.callback(process.kill)
        printed = ""
        if awaited is not None:
            assert process.stdout is not None
            while awaited not in printed and (line := process.stdout.readline()):
                printed += line
            process.terminate()
        printed += process.communicate(timeout=30)[0]
    return printed, process.returncode


def _fits(expected: str, printed: str) -> bool:
    pattern = ".*?".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def _error_type(name: str | None) -> type[BaseException] | tuple[()]:
    if name is None:
        return ()
    kind: type[BaseException] = getattr(duetime.errors, name, None) or getattr(builtins, name)
    return kind
