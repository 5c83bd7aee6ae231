"""Does what a page says as its reader would: makes the files it shows, and types its commands into terminals.

What is printed is compared with the page, but for times, durations, ids, numbers of processes and the space between
columns. `…` stands for a part of a line, and on a line of its own for any lines. An id or a number of a process that a
page repeats is the same one, and in a command the real one is typed.

A fence may say `terminal="1"`: the last command there goes on while others are typed elsewhere, and a later block of
that terminal says what it prints from then on. `^C` on a line of its own is Ctrl-C. `within="30"`: type the command
again until it prints this, for so many seconds at most.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from tests.docs.snippets import Block, check_quotation, read_blocks
from tools.servers.process import free_port

PATIENCE: Final = 60.0
PORT: Final = "127.0.0.1:8000"
"""Where the servers of a page listen, on the page."""

_LOOK: Final = 0.02
_INTERRUPTED: Final = {0, -signal.SIGINT, 128 + signal.SIGINT}
_ID, _NUMBER = r"[0-9a-f]{32}", r"\d+"
_TIME: Final = r"\d{4}-\d\d-\d\d[ T][\d:.]+(?:Z|[+-]\d\d:\d\d)?"
_DURATION: Final = r"\b\d+(?:\.\d+)? ?(?:ms|s|min|h|d)\b"
_MASKS: Final = re.compile(
    rf"(?P<id>\b{_ID}\b)|(?P<number>(?<=\bpid ){_NUMBER})|(?P<time>{_TIME})|(?P<duration>{_DURATION})"
    r"|(?P<lines>^…(?:\n|\Z))|(?P<part>…)|(?P<gap> {2,})",
    re.MULTILINE,
)
_STANDS_FOR: Final = {
    "id": _ID,
    "number": _NUMBER,
    "time": _TIME,
    "duration": _DURATION,
    "lines": r"(?:.*\n)*?",
    "part": ".*?",
    "gap": " +",
}


class Session(NamedTuple):
    """A command, or "" for the one that goes on, and what the page says that is printed."""

    command: str
    expected: str


def sessions(text: str) -> Iterator[Session]:
    """Yield the commands of a block."""
    going_on, *typed = re.split(r"^\$ ", text, flags=re.MULTILINE)
    if going_on:
        yield Session("", going_on)
    for part in typed:
        command, _, expected = part.partition("\n")
        yield Session(command, expected)


class Reader:
    """Follows one page in an empty folder."""

    def __init__(self, name: str, folder: Path, *, aside: Path) -> None:
        """Keep in `aside`, where the reader does not look, what is printed."""
        self._name = name
        self._folder = folder
        self._aside = aside
        self._address = f"127.0.0.1:{free_port()}"
        self._terminals: dict[str, Terminal] = {}
        self._known: dict[str, str] = {}
        """The real ids and numbers of processes, by those on the page."""
        self._files: list[str] = []
        self._typed = ""

    def __enter__(self) -> Self:
        # A terminal shows no bar of progress, and what is printed here goes to no terminal.
        (self._aside / ".curlrc").write_text("silent\nshow-error\n", encoding="utf-8")
        self._environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
            "UVICORN_PORT": self._address.partition(":")[2],
            "CURL_HOME": str(self._aside),
            "NO_PROXY": "127.0.0.1",
        }
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with ExitStack() as stack:
            for terminal in self._terminals.values():
                stack.callback(terminal.close)

    def follow(self, text: str) -> None:
        """Do what the page says from its beginning to its end."""
        for block in read_blocks(text.replace(PORT, self._address)):
            self._do(block)
        # What no command has used must work, too.
        for stem in (Path(file).stem for file in self._files if file.endswith(".py")):
            if not re.search(rf"\b{stem}\b", self._typed):
                self._type(Block(language="console", text=f'$ python -c "import {stem}"\n', line=0))

    def _do(self, block: Block) -> None:
        if "no-run" in block.options:
            return
        if "from" in block.options:
            check_quotation(block, self._name)
        elif "title" in block.options:
            self._files.append(block.options["title"])
            with (self._folder / block.options["title"]).open("a", encoding="utf-8") as file:
                file.write(block.text)
        elif block.language == "console":
            self._type(block)
        else:
            assert block.language != "python", (
                f'{self._name}:{block.line} says in no title="…" which file it is'
            )

    def _type(self, block: Block) -> None:
        place = block.options.get("terminal", "")
        if place not in self._terminals:
            self._terminals[place] = Terminal(
                self._folder, self._environment, printed=self._aside / f"printed-{place}"
            )
        terminal, typed = self._terminals[place], list(sessions(block.text))
        for session in typed:
            going_on = bool(place) and session is typed[-1]
            until = time.monotonic() + float(block.options.get("within", 0))
            while True:
                try:
                    self._run(terminal, session, going_on=going_on)
                    break
                except AssertionError as error:
                    if time.monotonic() > until:
                        raise AssertionError(f"{self._name}:{block.line}: {error}") from None

    def _run(self, terminal: Terminal, session: Session, *, going_on: bool) -> None:
        if session.command:
            self._typed += f"{session.command}\n"
            terminal.type(self._really(session.command))
        before, interrupted, after = session.expected.partition("^C\n")
        if interrupted or going_on:
            self._compare(before, terminal)
        if interrupted:
            terminal.interrupt()
            self._compare(after, terminal, to_the_end=_INTERRUPTED)
        elif not going_on:
            self._compare(before, terminal, to_the_end={0})

    def _compare(self, expected: str, terminal: Terminal, *, to_the_end: set[int] | None = None) -> None:
        """Wait until what is expected is printed, or has been printed at the end with one of these exit codes."""
        names, pattern = _pattern(expected, self._known)
        if to_the_end is not None:
            pattern += r"\Z"
            terminal.wait()
        found = terminal.wait_for(pattern, said=expected)
        assert to_the_end is None or terminal.exit_code in to_the_end, f"exit code {terminal.exit_code}"
        self._known |= zip(names, found, strict=True)

    def _really(self, command: str) -> str:
        """Return the command with what the page does not know."""
        for name, real in self._known.items():
            command = re.sub(rf"\b{name}\b", real, command)
        return command


class Terminal:
    """A shell in a folder, whose commands run one after the other."""

    def __init__(self, folder: Path, environment: dict[str, str], *, printed: Path) -> None:
        self._folder = folder
        self._environment = environment
        self._printed = printed
        self._process: subprocess.Popen[bytes] | None = None
        self._seen = 0

    @property
    def exit_code(self) -> int | None:
        """That of the last command, if it has ended."""
        return None if self._process is None else self._process.poll()

    def type(self, command: str) -> None:
        """Run a command when the one before it has ended."""
        self.wait()
        self._command, self._seen = command, 0
        with self._printed.open("wb") as output:
            self._process = subprocess.Popen(
                ["/bin/bash", "-c", command],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_for(self, pattern: str, *, said: str) -> tuple[str, ...]:
        """Wait until what was printed and not yet seen begins as a pattern says, and return its groups."""
        deadline = time.monotonic() + PATIENCE
        while True:
            over = self.exit_code is not None or time.monotonic() > deadline
            new = self._lines()[self._seen :]
            if found := re.match(pattern, new):
                self._seen += found.end()
                return found.groups()
            assert not over, f"{self._command}\n{new}\nis not what the page says:\n{said}"
            time.sleep(_LOOK)

    def wait(self) -> None:
        """Wait for the end of the command."""
        if self._process is not None:
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"{self._command} does not end:\n{self._lines()}") from None

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self._signal(signal.SIGINT)

    def close(self) -> None:
        """End what still runs."""
        self._signal(signal.SIGKILL)
        self.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            # To the whole group, as a terminal does.
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _lines(self) -> str:
        """Return the whole lines that were printed, without spaces at their ends."""
        text = self._printed.read_text("utf-8")
        whole = text if self.exit_code is not None else text[: text.rfind("\n") + 1]
        return "".join(f"{line.rstrip()}\n" for line in whole.splitlines())


def _pattern(expected: str, known: dict[str, str]) -> tuple[list[str], str]:
    """Return the names in a text that are not known yet, and a pattern with a group for each."""
    names: list[str] = []
    pattern, end = "", 0
    for found in _MASKS.finditer(expected):
        pattern += re.escape(expected[end : found.start()])
        name, kind, end = found[0], found.lastgroup or "", found.end()
        if kind not in {"id", "number"}:
            pattern += _STANDS_FOR[kind]
        elif name in known:
            pattern += known[name]
        elif name in names:
            pattern += rf"(?:\{names.index(name) + 1})"
        else:
            names.append(name)
            pattern += f"({_STANDS_FOR[kind]})"
    return names, pattern + re.escape(expected[end:])
