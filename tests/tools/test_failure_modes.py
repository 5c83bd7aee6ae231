from __future__ import annotations

from pathlib import Path

import pytest

from tools.failure_modes import CATALOGUE, FailureMode, problems, read_catalogue, read_coverage, render

LOST = FailureMode(id="lost-job", title="A job is lost", failure="It vanishes.", guarantee="It stays.")


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def test_a_failure_mode_without_a_test_is_a_problem() -> None:
    assert problems([LOST], {}) == ["'lost-job' has no test: mark one with @pytest.mark.covers('lost-job')"]


def test_a_mark_with_an_unknown_id_is_a_problem() -> None:
    coverage = {"lost-job": ["tests/test_a.py::test_a"], "lots-job": ["tests/test_b.py::test_b"]}
    assert problems([LOST], coverage) == [
        "tests/test_b.py::test_b covers 'lots-job', which is not in docs/failure_modes.toml"
    ]


def test_an_id_that_is_listed_twice_is_a_problem() -> None:
    assert problems([LOST, LOST], {"lost-job": ["tests/test_a.py::test_a"]}) == [
        "'lost-job' is listed twice in docs/failure_modes.toml"
    ]


def test_marks_are_found_on_functions_classes_methods_and_modules(tmp_path: Path) -> None:
    write(
        tmp_path / "tests/test_a.py",
        """
import pytest
pytestmark = [pytest.mark.slow, pytest.mark.covers("module")]
@pytest.mark.covers("function", "both")
async def test_it(): ...
@pytest.mark.covers("class")
class TestIt:
    @pytest.mark.covers("both")
    def test_it(self): ...
""",
    )
    write(tmp_path / "src/duetime/testing/suite.py", "@pytest.mark.covers('shipped')\ndef test_it(): ...\n")
    assert read_coverage(tmp_path) == {
        "module": ["tests/test_a.py"],
        "function": ["tests/test_a.py::test_it"],
        "both": ["tests/test_a.py::test_it", "tests/test_a.py::TestIt::test_it"],
        "class": ["tests/test_a.py::TestIt"],
        "shipped": ["src/duetime/testing/suite.py::test_it"],
    }


def test_a_mark_that_cannot_be_read_without_running_it_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "tests/test_a.py", "@pytest.mark.covers(NAME)\ndef test_it(): ...\n")
    with pytest.raises(ValueError, match="malformed"):
        read_coverage(tmp_path)


def test_catalogue_text_may_be_wrapped_freely(tmp_path: Path) -> None:
    write(
        tmp_path / CATALOGUE,
        """
[[failure]]
id = "lost-job"
title = "A job is lost"
failure = '''
It
vanishes.
'''
guarantee = "It stays."
""",
    )
    assert read_catalogue(tmp_path) == [LOST]


def test_the_page_links_each_test_to_its_file() -> None:
    page = render([LOST], {"lost-job": ["tests/unit/test_a.py::TestIt::test_it"]})
    assert "- [`TestIt::test_it`](../../tests/unit/test_a.py)" in page
