from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

TYPED_API = Path(__file__).with_name("typed_api.py")
ROOT = TYPED_API.parents[2]
EXPECTED_ERROR = re.compile(r"  # type: ignore\[[a-z-]+\]$", re.MULTILINE)


def test_mypy_knows_the_parameters_and_results_of_tasks() -> None:
    found = check("mypy", TYPED_API)
    assert found.returncode == 0, found.stdout


def test_pyright_knows_them_too(tmp_path: Path) -> None:
    text = TYPED_API.read_text(encoding="utf-8")
    # Pyright does not complain about a comment that hides nothing, so that it is shown the errors themselves.
    bare = tmp_path / "bare.py"
    bare.write_text(EXPECTED_ERROR.sub("", text), encoding="utf-8")
    expected = [number for number, line in enumerate(text.splitlines()) if EXPECTED_ERROR.search(line)]
    assert pyright_errors(bare) == expected


def test_pyright_follows_the_base_class_that_a_scheduler_has(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from duetime import Scheduler\n"
        "scheduler = Scheduler()\n"
        "class Count(scheduler.Job, queue='counts'):\n"
        "    async def run(self, number: int) -> None: ...\n"
        "Count.call(1)\n"
        "Count.call('one')\n",
        encoding="utf-8",
    )
    assert pyright_errors(program) == [5]


def pyright_errors(file: Path) -> list[int]:
    """Return the lines, from 0, in which there are errors."""
    found = json.loads(check("basedpyright", "--outputjson", file).stdout)["generalDiagnostics"]
    return sorted({error["range"]["start"]["line"] for error in found if error["severity"] == "error"})


def check(checker: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", checker, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
