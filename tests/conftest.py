from __future__ import annotations

pytest_plugins = [
    "tests.support.memory",
    "tests.support.order",
    "tests.support.profiles",
    "tests.support.servers",
    "tests.support.databases",
    "tests.support.stores",
    "tests.support.skips",
]
