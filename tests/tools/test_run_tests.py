from __future__ import annotations

from pathlib import Path

import pytest

from tools.run_tests import MOST_REPEATED, failed, verdict

REPORT = """
<testsuites><testsuite>
  <testcase classname="tests.a" name="test_passes"/>
  <testcase classname="tests.a" name="test_fails"><failure message="no"/></testcase>
  <testcase classname="tests.b" name="test_breaks"><error message="no"/></testcase>
</testsuite></testsuites>
"""


def test_each_test_that_failed_is_found_in_the_report(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT, encoding="utf-8")
    assert failed(report) == ["tests.a::test_fails", "tests.b::test_breaks"]


@pytest.mark.parametrize(
    ("repeated", "code", "expected"),
    [(1, 0, 0), (MOST_REPEATED, 0, 0), (MOST_REPEATED + 1, 0, 1), (1, 1, 1)],
)
def test_a_run_is_red_if_a_test_fails_twice_or_too_many_were_repeated(
    repeated: int, code: int, expected: int, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"tests.a::test_{n}" for n in range(repeated)]
    assert verdict(names, code) == expected
    shown = capsys.readouterr().err
    assert all(name in shown for name in names)
