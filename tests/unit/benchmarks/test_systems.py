from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.peers import systems
from benchmarks.peers.catalogue import SYSTEMS, System

every_system = pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)


@every_system
def test_every_system_has_its_adapter(system: System) -> None:
    assert (Path(systems.__path__[0]) / f"{system.adapter.partition(':')[0]}.py").is_file()


@every_system
def test_versions_are_pinned_exactly(system: System) -> None:
    assert all("==" in requirement for requirement in system.requirements)
    assert system.requirements


@every_system
def test_what_only_a_client_needs_is_not_loaded_by_workers_whose_memory_is_measured(system: System) -> None:
    tree = ast.parse(
        (Path(systems.__path__[0]) / f"{system.adapter.partition(':')[0]}.py").read_text(encoding="utf-8")
    )
    others = [
        node for node in tree.body if not (isinstance(node, ast.ClassDef) and node.name.endswith("Client"))
    ]
    used = {node.id for other in others for node in ast.walk(other) if isinstance(node, ast.Name)}
    for module, names in loaded(others):
        assert used & names, f"load {module} in the client's code"


def loaded(statements: list[ast.stmt]) -> Iterator[tuple[str, set[str]]]:
    """Yield the modules of others that are loaded at the top, and what is taken from each."""
    for node in statements:
        if isinstance(node, ast.ImportFrom) and node.module:
            module = node.module
        elif isinstance(node, ast.Import):
            module = node.names[0].name
        else:
            continue
        if module.partition(".")[0] not in sys.stdlib_module_names | {"__future__"}:
            yield module, {name.asname or name.name for name in node.names}
