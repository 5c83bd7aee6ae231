from __future__ import annotations

from duetime.model.stored.credentials import digest_of, new_secret


def test_secrets_differ_and_their_digests_tell_nothing_of_them() -> None:
    first, second = new_secret(), new_secret()
    assert first != second
    assert len(first) > 40
    assert digest_of(first) == digest_of(first) != digest_of(second)
    assert first not in digest_of(first)


def test_what_is_no_text_of_ours_has_a_digest_too() -> None:
    assert len(digest_of("\ud800☃")) == 64
