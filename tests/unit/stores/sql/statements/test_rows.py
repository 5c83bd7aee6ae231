from __future__ import annotations

import msgspec
from hypothesis import given, strategies as st

from duetime.model.text import clean_text
from duetime.stores.sql.statements.rows import encode_batch, unpack_claims

TEXT = st.text(st.characters(codec=None))


@given(TEXT)
def test_any_text_can_be_put_into_a_batch(text: str) -> None:
    assert msgspec.json.decode(encode_batch([(text, 1, None)])) == [[clean_text(text), 1, None]]


def test_an_escaped_nul_in_a_payload_is_left_alone() -> None:
    payload = r'{"text": "\u0000"}'
    assert msgspec.json.decode(encode_batch([(payload,)])) == [[payload]]


def test_a_row_that_somebody_has_edited_is_handed_out_to_be_ended_and_so_are_its_neighbours() -> None:
    good = ["a", 1, "c", "greet", "{}", "default", 5, 7, 8, 0, 0, 0, "retry", None, None, None, None, None]
    bad = [*good[:3], 9, *good[4:12], "perhaps", *good[13:], "key"]
    claims = unpack_claims(encode_batch([good, bad]))
    assert [(claim.task, claim.on_crash, claim.key, claim.problem) for claim in claims] == [
        ("greet", "retry", None, None),
        ("", "perhaps", "key", "its row cannot be read: task is 9"),
    ]
