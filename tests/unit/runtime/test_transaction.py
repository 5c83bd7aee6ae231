"""A handler's transaction where there is nobody to lend one; tests/integration/test_transactions.py has the rest."""

from __future__ import annotations

import pytest

from duetime.errors import Unsupported
from duetime.model.instants import SECOND
from duetime.runtime.run import Run
from duetime.runtime.transaction import JobTransaction
from tests.unit.runtime.kit import claim


def test_a_plain_function_in_a_child_process_is_refused() -> None:
    with pytest.raises(Unsupported, match="cpu=True"), JobTransaction(Run(claim(), 0), timeout=SECOND):
        pass


async def test_a_coroutine_in_a_child_process_is_refused() -> None:
    with pytest.raises(Unsupported, match="cpu=True"):
        async with JobTransaction(Run(claim(), 0), timeout=SECOND):
            pass
