from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.stores.sql.rows import batch, clean_text, unpack_claims

TEXT = st.text(st.characters(codec=None))


@given(TEXT)
def test_any_text_can_be_put_into_a_batch(text: str) -> None:
    assert msgspec.json.decode(batch([(text, 1, None)])) == [[clean_text(text), 1, None]]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_text_that_can_be_kept_is_kept(text: str) -> None:
    assert clean_text(text) == text


@pytest.mark.parametrize("bad", ["\0", "\ud800", "é\0", "\0\udfff"])
def test_what_no_database_keeps_is_replaced(bad: str) -> None:
    assert clean_text(f"a{bad}b") == f"a{re.sub('[^é]', chr(0xFFFD), bad)}b"


def test_an_escaped_nul_in_a_payload_is_left_alone() -> None:
    payload = r'{"text": "\u0000"}'
    assert msgspec.json.decode(batch([(payload,)])) == [[payload]]


def test_a_row_that_somebody_has_edited_is_handed_out_as_it_is_and_so_are_its_neighbours() -> None:
    good = ["a", 1, "c", "greet", "{}", "default", 5, 7, 8, 0, 0, 0, "retry", None, None, None, None, None]
    bad = [*good[:3], 9, *good[4:12], "perhaps", *good[13:], "key"]
    claims = unpack_claims(batch([good, bad]))
    assert [(claim.task, claim.on_crash, claim.key) for claim in claims] == [
        ("greet", "retry", None),
        (9, "perhaps", "key"),
    ]
