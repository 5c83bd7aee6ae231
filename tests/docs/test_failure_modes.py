from __future__ import annotations

from tools.failure_modes import PAGE, ROOT, problems, read_catalogue, read_coverage, render


def test_every_failure_mode_has_a_test_and_every_mark_a_failure_mode() -> None:
    assert problems(read_catalogue(ROOT), read_coverage(ROOT)) == []


def test_the_page_says_what_the_catalogue_and_the_tests_say() -> None:
    written = (ROOT / PAGE).read_text(encoding="utf-8")
    assert written == render(read_catalogue(ROOT), read_coverage(ROOT)), f"{PAGE} is stale. Run: make docs"
