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
    found = json.loads(check("basedpyright", "--outputjson", bare).stdout)["generalDiagnostics"]
    assert [error["range"]["start"]["line"] for error in found] == expected, found


def check(checker: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", checker, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
