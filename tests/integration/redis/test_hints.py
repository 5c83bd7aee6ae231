"""Whoever listens knows when it hears nothing, and hears again by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from duetime.stores.base import Hint
from duetime.stores.redis import hints as listen
from duetime.testing.conformance.kit import put
from duetime.testing.conformance.wakeups import listening
from tests.integration.kit import until
from tests.integration.redis.kit import opened
from tests.integration.redis.switch import Switch
from tools.servers import RedisServer


@pytest_asyncio.fixture
async def switch(redis: RedisServer) -> AsyncIterator[Switch]:
    """Leads to `redis`."""
    redis.flush()
    async with Switch(redis).open() as switch:
        yield switch


async def test_a_connection_that_was_cut_without_a_word_is_noticed_and_made_anew(
    redis: RedisServer, switch: Switch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listen, "_CHECK_EVERY", 0.1)
    monkeypatch.setattr(listen, "_ANSWER_WITHIN", 0.2)
    async with opened(switch.url) as store, opened(redis.url()) as other, listening(store) as heard:
        switch.freeze()
        await until(lambda: not store.hears_others, what="a store that knows it")
        await until(lambda: store.hears_others, what="a store that hears again")
        await put(other)
        await heard(Hint("jobs"))


async def test_an_error_that_nobody_has_thought_of_does_not_end_the_listening(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(redis_url) as store, opened(redis_url) as other, listening(store) as heard:
        with monkeypatch.context() as broken:
            broken.setattr(listen, "_read_hint", lambda *_: 1 / 0)
            await put(other)
            await until(lambda: not store.hears_others, what="a store that knows it")
        await until(lambda: store.hears_others, what="a store that hears again")
        await put(other)
        await heard(Hint("jobs"))


async def test_whoever_has_stopped_to_listen_does_not_claim_to_hear(redis_url: str) -> None:
    async with opened(redis_url) as store:
        async with listening(store):
            await until(lambda: store.hears_others, what="a store that hears")
        assert not store.hears_others
