"""Errors of a store that somebody can mend say what to do, behind their last semicolon: `doctor` cuts them there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from duetime.errors import SchemaMismatch, StoreUnavailable, StoreUnusable
from duetime.stores.base import DoctorCheck
from duetime.stores.redis import errors as redis
from duetime.stores.sql.pool import errors as meanings
from duetime.stores.sql.pool.errors import NETWORK_ERRORS
from duetime.stores.sql.postgres import errors as postgres

MENDABLE = (StoreUnavailable, StoreUnusable, SchemaMismatch)


def texts() -> Iterator[str]:
    yield from (*redis._UNUSABLE.values(), *redis._UNAVAILABLE.values())
    for kind, text in redis._BY_TYPE.values():
        if issubclass(kind, MENDABLE):
            yield text
    for meaning in (
        *vars(meanings).values(),
        *[*postgres._MEANINGS.values(), *postgres._CLIENT_SIDE.values(), *NETWORK_ERRORS.values()],
    ):
        if isinstance(meaning, meanings.ErrorMeaning) and issubclass(meaning.kind, MENDABLE):
            yield meaning.text


# What is injected by tests says what it likes.
@pytest.mark.parametrize("text", sorted({*texts()} - {"{error}"}))
def test_a_text_ends_with_what_to_do(text: str) -> None:
    what, semicolon, fix = text.rpartition("; ")
    assert what
    assert semicolon
    assert fix
    assert "{error}" not in fix, "the server's own words may have semicolons"


def test_a_finding_is_cut_into_what_is_wrong_and_what_to_do() -> None:
    found = DoctorCheck.refused("writes", StoreUnavailable("the disk is full (no; space); free some"))
    assert (found.detail, found.fix) == ("the disk is full (no; space)", "free some")
    bare = DoctorCheck.refused("writes", StoreUnavailable("no"))
    assert (bare.detail, bare.ok) == ("no", False)
    assert bare.fix
