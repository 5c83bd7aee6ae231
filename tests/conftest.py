from __future__ import annotations

pytest_plugins = ["tests.support.servers", "tests.support.stores", "tests.support.skips"]
