from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from duetime.model.text import clean_text


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_text_that_can_be_kept_is_kept(text: str) -> None:
    assert clean_text(text) == text


@pytest.mark.parametrize("bad", ["\0", "\ud800", "é\0", "\0\udfff"])
def test_what_no_database_keeps_is_replaced(bad: str) -> None:
    assert clean_text(f"a{bad}b") == f"a{re.sub('[^é]', chr(0xFFFD), bad)}b"
