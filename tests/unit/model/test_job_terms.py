from __future__ import annotations

from duetime.model.job import FOREVER, NO_TERMS, JobTerms, join_tags, split_tags


def test_terms_survive_being_text() -> None:
    terms = JobTerms(
        expires=1, tags=("a", "b"), callbacks="{}", gate="g", result_ttl=0, failure_ttl=FOREVER, headers="{}"
    )
    assert JobTerms.from_text(terms.to_text()) == terms


def test_terms_that_say_nothing_are_no_text() -> None:
    assert NO_TERMS.to_text() is None
    assert JobTerms.from_text(None) is NO_TERMS


def test_a_time_to_live_of_zero_is_said() -> None:
    assert JobTerms.from_text(JobTerms(result_ttl=0).to_text()).result_ttl == 0


def test_terms_of_a_later_version_are_left_out() -> None:
    assert JobTerms.from_text('{"gate": "g", "moon": "full"}') == JobTerms(gate="g")


def test_tags_survive_being_joined() -> None:
    assert split_tags(join_tags(("a", "b"))) == ("a", "b")
    assert split_tags(join_tags(())) == ()
