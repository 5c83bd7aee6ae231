from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

TYPED_API = Path(__file__).with_name("typed_api.py")
ROOT = TYPED_API.parents[2]
EXPECTED_ERROR = re.compile(r"  # type: ignore\[[a-z-]+\]$", re.MULTILINE)
SUBCLASS = """\
from duetime import Scheduler
scheduler = Scheduler()
class Count(scheduler.Job, queue="counts"):
    async def run(self, number: int) -> None: ...
Count.call(1)
Count.call("one")
"""


def test_mypy_knows_the_parameters_and_results_of_tasks() -> None:
    found = check("mypy", TYPED_API)
    assert found.returncode == 0, found.stdout


@pytest.fixture(scope="module")
def pyright_errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    """The lines with errors, from 0, by program: pyright takes long to start, and hardly longer for two."""
    folder = tmp_path_factory.mktemp("programs")
    # Pyright does not complain about a comment that hides nothing, so that it is shown the errors themselves.
    (folder / "bare.py").write_text(EXPECTED_ERROR.sub("", TYPED_API.read_text(encoding="utf-8")))
    (folder / "subclass.py").write_text(SUBCLASS)
    found = json.loads(check("basedpyright", "--outputjson", folder).stdout)["generalDiagnostics"]
    lines: dict[str, set[int]] = {"bare": set(), "subclass": set()}
    for error in found:
        if error["severity"] == "error":
            lines[Path(error["file"]).stem].add(error["range"]["start"]["line"])
    return {name: sorted(numbers) for name, numbers in lines.items()}


def test_pyright_knows_them_too(pyright_errors: dict[str, list[int]]) -> None:
    lines = TYPED_API.read_text(encoding="utf-8").splitlines()
    assert pyright_errors["bare"] == [
        number for number, line in enumerate(lines) if EXPECTED_ERROR.search(line)
    ]


def test_pyright_follows_the_base_class_that_a_scheduler_has(pyright_errors: dict[str, list[int]]) -> None:
    assert pyright_errors["subclass"] == [5]


def check(checker: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", checker, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
