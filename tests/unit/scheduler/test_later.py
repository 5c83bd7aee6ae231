from __future__ import annotations

import pytest

from duetime.scheduler import later


def test_every_name_is_there_when_it_is_asked_for() -> None:
    assert [getattr(later, name).__name__ for name in later.__all__] == later.__all__


def test_a_name_that_is_not_there_is_told_as_of_any_module() -> None:
    with pytest.raises(AttributeError, match=r"module 'duetime\.scheduler\.later' has no attribute 'Celery'"):
        later.Celery  # type: ignore[attr-defined]  # noqa: B018
