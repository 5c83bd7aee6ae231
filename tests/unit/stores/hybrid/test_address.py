from __future__ import annotations

import pytest

from duetime.errors import ConfigError
from duetime.model.routes import DEFAULT_ROUTES, Route, Tier
from duetime.model.time import MINUTE, SECOND
from duetime.stores.hybrid.address import HybridAddress
from duetime.stores.open import open_store

MEMORY, NEAR, FAR = Tier
FAR_URL = "postgresql://me:secret@db/app"
PLAIN = f"hybrid+redis://cache/0?far={FAR_URL}"


def test_what_is_near_and_far_is_read_with_the_usual_routes() -> None:
    address = HybridAddress.of(f"hybrid+redis://cache/0?pool=3&far={FAR_URL}")
    assert address.urls == {NEAR: "redis://cache/0?pool=3", FAR: FAR_URL}
    assert [*address.routes] == [route for route in DEFAULT_ROUTES if route.tier is NEAR]
    assert address.far_queues == frozenset()


def test_memory_is_put_in_front_or_is_all_that_is_near() -> None:
    in_front = HybridAddress.of(f"{PLAIN}&near=memory")
    assert [*in_front.urls] == [NEAR, MEMORY, FAR]
    assert [*in_front.routes] == [*DEFAULT_ROUTES]
    for alone in ("memory://", "sqlite://", "sqlite:///:memory:"):
        address = HybridAddress.of(f"hybrid+{alone}?far={FAR_URL}")
        assert address.urls == {MEMORY: "sqlite://", FAR: FAR_URL}
        assert [*address.routes] == [Route(MEMORY, 5 * SECOND)]


def test_longest_delays_and_queues_that_go_far_can_be_given() -> None:
    address = HybridAddress.of(f"{PLAIN}&near=memory&near_up_to=10m&memory_up_to=1s&far_queues=billing,mail")
    assert [*address.routes] == [Route(MEMORY, SECOND), Route(NEAR, 10 * MINUTE)]
    assert address.far_queues == {"billing", "mail"}


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("hybrid+redis://cache/0", "names no far store; write hybrid+redis://"),
        ("hybrid+redis://cache/0?far=", "far is in the URL without a value"),
        (f"{PLAIN}&far=sqlite:///b.db", "far is in the URL more than once"),
        (f"hybrid+kafka://cache?far={FAR_URL}", "kafka:// is not a database we know"),
        ("hybrid+redis://cache?far=kafka://db", "kafka:// is not a database we know"),
        ("hybrid+redis://cache?far=db", "this one has no ://"),
        (f"hybrid+hybrid+redis://cache?far={FAR_URL}", "cannot be a part of another one"),
        (
            "hybrid+redis://cache?far=hybrid+redis://other?far=sqlite:///b.db",
            "cannot be a part of another one",
        ),
        (f"hybrid+{FAR_URL}?far={FAR_URL}", "near and far are the same store"),
        ("hybrid+redis://cache?far=memory://", "memory does not; name a file or a server"),
        ("hybrid+redis://cache?far=sqlite://", "memory does not; name a file or a server"),
        (f"{PLAIN}&near=redis", "near=memory puts memory in front"),
        (f"hybrid+memory://?near=memory&far={FAR_URL}", "near=memory puts memory in front"),
        (f"{PLAIN}&near_up_to=0s", "near_up_to must be longer than 0"),
        (f"{PLAIN}&near_up_to=soon", "near_up_to cannot be 'soon'"),
        (f"{PLAIN}&memory_up_to=5s", "memory_up_to, and no such store"),
        (f"hybrid+memory://?near_up_to=5s&far={FAR_URL}", "near_up_to, and no such store"),
        (f"{PLAIN}&near=memory&memory_up_to=2h&near_up_to=1h", "memory_up_to must be shorter"),
        (f"{PLAIN}&near=memory&memory_up_to=10m", "memory_up_to must be shorter"),
        (f"{PLAIN}&far_queues=billing,,mail", "a queue in far_queues '' is not allowed"),
        (f"{PLAIN}&nonsense=1", "unknown option 'nonsense'"),
    ],
)
def test_what_cannot_work_is_refused_with_what_to_write(url: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        open_store(url)
    assert problem in str(refused.value)
    assert "secret" not in str(refused.value)
