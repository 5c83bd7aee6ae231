from __future__ import annotations

import pytest

from duetime.scheduler import lazy


def test_every_name_is_there_when_it_is_asked_for() -> None:
    assert [getattr(lazy, name).__name__ for name in lazy.__all__] == lazy.__all__


def test_a_name_that_is_not_there_is_told_as_of_any_module() -> None:
    with pytest.raises(AttributeError, match=r"module 'duetime\.scheduler\.lazy' has no attribute 'Celery'"):
        lazy.Celery  # type: ignore[attr-defined]  # noqa: B018
