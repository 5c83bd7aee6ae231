from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import terminals
from tests.docs.snippets import ROOT, TYPED
from tests.docs.terminals import Reader


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DUETIME_URL", raising=False)


def follow(text: str, tmp_path: Path, *, name: str = "page") -> None:
    folder, aside = tmp_path / "reader", tmp_path / "aside"
    folder.mkdir()
    aside.mkdir()
    with Reader(name, folder, aside=aside) as reader:
        reader.follow(text)


@pytest.mark.parametrize("page", TYPED)
@pytest.mark.timeout(240)  # The tutorial counts to eight, and the guide sends a mail after ten seconds.
def test_a_page_is_true_as_it_is_printed(page: str, tmp_path: Path) -> None:
    follow((ROOT / page).read_text(encoding="utf-8"), tmp_path, name=page)


FILE = """```python title="say.py"
import sys

if sys.argv[1:]:
    print(sys.argv[1])
```
"""
WAITING = """```python title="wait.py"
import os, signal, time
print(f"started: pid {os.getpid()}", flush=True)
signal.sigwait({signal.SIGINT})
print("stopped")
```
"""


def console(text: str, fence: str = "") -> str:
    return f"```console {fence}\n{text}\n```\n"


TRUE = {
    "what is printed": console("$ python say.py hello\nhello"),
    "several commands": console("$ python say.py a\na\n$ python say.py b | tr b c\nc"),
    "a part of a line": console("$ python say.py 'worker 7 is up'\nworker … up"),
    "lines left out": console("$ printf 'a\\nb\\nc\\n'\na\n…\nc"),
    "other times": console(
        "$ python say.py 'due 3 s ago, 2026-01-02 03:04:05+00:00'\ndue 17 s ago, 2025-10-10T20:20:20.123456Z"
    ),
    "other columns": console("$ python say.py 'ID     STATE'\nID   STATE"),
    "another id": console(
        f"$ python say.py {'0a' * 16}\n{'ff' * 16}\n$ python say.py {'ff' * 16}\n{'ff' * 16}"
    ),
    "Ctrl-C": WAITING + console("$ python wait.py\nstarted: pid 1\n^C\nstopped"),
    "two terminals": WAITING
    + console("$ python wait.py\nstarted: pid 1", 'terminal="1"')
    + console("$ kill -INT 1")
    + console("stopped\n$ python say.py next\nnext", 'terminal="1"'),
    "something that comes later": console("$ date >> dates; wc -l < dates\n3", 'within="30"'),
    "nothing": console("$ (exit 0)"),
}
FALSE = {
    "other output": console("$ python say.py hello\ngoodbye"),
    "more output": console("$ python say.py hello"),
    "less output": console("$ python say.py hello\nhello\nhello"),
    "a command that is not there": console("$ nosuchcommand\n…"),
    "a command that fails": console("$ python say.py hello && exit 1\nhello"),
    "another id than before": console(f"$ echo {'0a' * 16} {'0b' * 16}\n{'ff' * 16} {'ff' * 16}"),
    "other output before Ctrl-C": WAITING + console("$ python wait.py\nbegan\n^C\nstopped"),
    "other output after Ctrl-C": WAITING + console("$ python wait.py\nstarted: pid 1\n^C\nended"),
    "a file without a name": "```python\nx = 1\n```\n",
    "a file that is wrong": '```python title="wrong.py"\nimport nosuchmodule\n```\n',
    "something that never comes": console("$ date >> dates; wc -l < dates\n-3", 'within="0.2"'),
}


@pytest.mark.parametrize("kind", TRUE)
def test_a_page_may_say(kind: str, tmp_path: Path) -> None:
    follow(FILE + TRUE[kind], tmp_path)


@pytest.mark.parametrize("kind", FALSE)
def test_a_page_must_not_say(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminals, "PATIENCE", 5.0)
    with pytest.raises(AssertionError, match=r"page:\d+"):
        follow(FILE + FALSE[kind], tmp_path)


def test_servers_listen_at_a_port_that_is_free(tmp_path: Path) -> None:
    command = "$ python -c \"import os; print('http://127.0.0.1:' + os.environ['UVICORN_PORT'])\""
    follow(console(f"{command}\nhttp://127.0.0.1:8000"), tmp_path)


def test_what_goes_on_at_the_end_of_a_page_is_ended(tmp_path: Path) -> None:
    text = 'print(f"started: pid {os.getpid()}", flush=True)\nopen("pid", "w").write(str(os.getpid()))'
    follow(
        f'```python title="wait.py"\nimport os, time\n{text}\ntime.sleep(600)\n```\n'
        + console("$ python wait.py\nstarted: pid 1", 'terminal="1"'),
        tmp_path,
    )
    pid = int((tmp_path / "reader" / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists()
