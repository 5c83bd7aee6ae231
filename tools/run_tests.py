"""Runs pytest, and what has failed once more, alone: `python -m tools.run_tests -n 4 ...`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

MOST_REPEATED = 3
"""How many tests may need a second run; more is a defect, even if all of them pass then."""
_SOME_FAILED = 1


def main(arguments: Sequence[str]) -> int:
    """Return the exit code of the run."""
    with tempfile.TemporaryDirectory(prefix="duetime-tests-") as folder:
        first = Path(folder) / "first.xml"
        code = _pytest(*arguments, f"--junit-xml={first}")
        if code != _SOME_FAILED:
            return code
        print("\nSome tests have failed; each must pass alone:", file=sys.stderr, flush=True)
        # Not in parallel, whatever was asked for.
        code = _pytest(*arguments, "-n", "0", "--last-failed", "--last-failed-no-failures", "none")
        return verdict(failed(first), code)


def failed(report: Path) -> list[str]:
    """Return the tests that a report has as failed."""
    cases = ET.parse(report).iter("testcase")  # noqa: S314 - pytest has just written it
    return [
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]


def verdict(repeated: Sequence[str], code: int) -> int:
    """Print every test that was run again, and return the exit code: more than a few make the run red."""
    print(f"\n{len(repeated)} tests were run again, at most {MOST_REPEATED} may be:", file=sys.stderr)
    for name in repeated:
        print(f"  {name}", file=sys.stderr)
    return code or int(len(repeated) > MOST_REPEATED)


def _pytest(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
