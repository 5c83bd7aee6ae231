from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module

from duetime.testing import conformance
from duetime.testing.conformance import StoreSuite

MODULES = [module.name for module in pkgutil.iter_modules(conformance.__path__)]


def test_every_group_of_tests_is_among_the_names_that_a_store_imports() -> None:
    groups = {
        name
        for module in MODULES
        for name, value in inspect.getmembers(
            import_module(f"{conformance.__name__}.{module}"), inspect.isclass
        )
        if issubclass(value, StoreSuite) and name.startswith("Test")
    }
    assert groups <= set(conformance.__all__)
    assert len(groups) > 20


def test_every_module_shows_the_values_of_a_failing_assertion() -> None:
    assert set(conformance._MODULES) == set(MODULES)
