"""How long a handler's transaction may be open."""

from __future__ import annotations

from typing import Any, cast

import pytest

from duetime.errors import InvalidOption
from duetime.model.time import SECOND
from duetime.runtime.options import WorkerOptions
from duetime.runtime.running.transaction import TransactionLender
from tests.unit.runtime.kit import context_of


class Shelf:
    """A store that has one writer, or many."""

    def __init__(self, *, single_writer: bool) -> None:
        self.single_writer = single_writer


def lending(*, single_writer: bool, lease: int = 30) -> TransactionLender:
    options = WorkerOptions(lease=lease * SECOND)
    context = context_of(Shelf(single_writer=single_writer), options=options)
    return TransactionLender(context, cast("Any", None))


def test_where_there_is_one_writer_a_transaction_leaves_time_to_renew_the_lease() -> None:
    assert lending(single_writer=True, lease=9).bound(3 * SECOND) == 3 * SECOND
    with pytest.raises(InvalidOption, match=r"at most 3 seconds.*lease"):
        lending(single_writer=True, lease=9).bound(3 * SECOND + 1)


def test_where_there_is_one_writer_no_transaction_outlasts_the_patience_of_the_others() -> None:
    assert lending(single_writer=True, lease=600).bound(10 * SECOND) == 10 * SECOND
    with pytest.raises(InvalidOption, match="at most 10 seconds"):
        lending(single_writer=True, lease=600).bound(11 * SECOND)


def test_where_there_are_many_writers_a_transaction_takes_as_long_as_it_says() -> None:
    assert lending(single_writer=False, lease=3).bound(3_600 * SECOND) == 3_600 * SECOND


def test_a_transaction_that_says_nothing_gets_five_seconds_or_what_there_is() -> None:
    assert lending(single_writer=False, lease=3).bound(None) == 5 * SECOND
    assert lending(single_writer=True).bound(None) == 5 * SECOND
    assert lending(single_writer=True, lease=9).bound(None) == 3 * SECOND
