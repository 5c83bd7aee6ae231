from __future__ import annotations

import pytest
from redis import exceptions

from duetime.errors import StoreError, StoreUnavailable, StoreUnusable
from duetime.stores.redis.errors import translate


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (
            exceptions.ConnectionError(
                "Error 1 connecting to host:1. [SSL] tlsv13 alert certificate required"
            ),
            StoreUnusable,
            "ssl_certfile=",
        ),
        (
            exceptions.RedisClusterException("cannot be connected: certificate verify failed: self-signed"),
            StoreUnusable,
            "ssl_ca_certs=",
        ),
        (
            exceptions.RedisClusterException("Redis Cluster cannot be connected"),
            StoreUnavailable,
            "cluster at Redis at host",
        ),
        (exceptions.ClusterError("TTL exhausted."), StoreUnavailable, "moves our keys"),
        (exceptions.ClusterDownError("CLUSTERDOWN The cluster is down"), StoreUnavailable, "at present"),
        (exceptions.SlotNotCoveredError("Slot 7 not covered"), StoreUnavailable, "Slot 7"),
        (exceptions.ReadOnlyError("You can't write"), StoreUnavailable, "replica at present"),
        (exceptions.ResponseError("MISCONF Errors writing to the AOF file"), StoreUnavailable, "its disk"),
        (exceptions.ResponseError("NOREPLICAS Not enough"), StoreUnavailable, "min-replicas-to-write"),
        (exceptions.ResponseError("ERR something else"), StoreError, "something else"),
        (TimeoutError(), StoreUnavailable, "did not answer in time"),
    ],
)
def test_what_a_server_says_becomes_an_error_that_tells_what_to_do(
    error: Exception, kind: type[StoreError], says: str
) -> None:
    raised = translate(error, "Redis at host")
    assert type(raised) is kind
    assert says in str(raised)


def test_what_is_not_the_servers_stays_as_it_is() -> None:
    error = KeyError("mine")
    assert translate(error, "Redis at host") is error
