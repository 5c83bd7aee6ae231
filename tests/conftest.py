from __future__ import annotations

pytest_plugins = [
    "tests.support.memory",
    "tests.support.order",
    "tests.support.pace",
    "tests.support.profiles",
    "tests.support.servers",
    "tests.support.signals",
    "tests.support.databases",
    "tests.support.stores",
    "tests.support.skips",
]
